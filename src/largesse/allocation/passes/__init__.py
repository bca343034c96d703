"""Passes over batches of customers, whose answers are added exactly."""

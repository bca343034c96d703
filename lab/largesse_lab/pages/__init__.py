"""Result pages of experiments: Markdown tables, figures, and comparisons of methods."""

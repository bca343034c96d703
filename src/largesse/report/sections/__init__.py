"""The sections of the report, one module and one template each. A new one is listed in `report.page`."""

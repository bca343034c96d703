"""Result pages: Markdown tables, figures, and the comparison of methods that several experiments share."""

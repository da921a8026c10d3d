"""From results to tables, figures, verdicts and the page that shows them."""

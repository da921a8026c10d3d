"""Tables, figures and verdicts from the results of runs, and the page that shows them."""

"""Pure numerical functions; each opens with the problem it solves."""

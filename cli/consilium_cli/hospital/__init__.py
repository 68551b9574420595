"""`consilium hospital`: what a hospital's owner looks at and decides."""

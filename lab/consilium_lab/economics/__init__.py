"""`consilium simulate economics`: does honesty pay? Thousands of rounds of settlement against players of every kind.

measure      torch: scores of real candidates by real voters, from federated averaging with the client's code
bank         those scores, as arrays
rules        the terms of a task that concern money
world        one run: all chance is drawn once, so that honest and dishonest play of the same rounds can be compared
players      the votes and updates of each kind of player
payoffs      settlement of many rounds at once, in integers, equal to `consilium_chain.settlement.settlement`
closed_form  the same answers by formulas, where they exist
operators    an operator with nodes of its own
scenarios    the rows of the result
findings     break-even shares, from the rows
plots, run   pictures, progress, files, and the rows for the page and the pictures
"""

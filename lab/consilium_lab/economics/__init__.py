"""`consilium simulate economics`: does honesty pay? Thousands of rounds of settlement against players of every kind.

measure      torch: scores of real candidates by real voters, from federated averaging through the client's code
bank         those scores, as arrays
rules        a task's terms, as far as money goes
world        one run: chance drawn once, so that honest and dishonest play of the same rounds can be compared
players      what each kind of player says
payoffs      settlement of many rounds at once, in integers, equal to `consilium_chain.settlement.settlement`
closed_form  the same answers by hand, where that is possible
scenarios    the rows of the result
plots, run   pictures, progress, files and the rows that page and pictures show
"""

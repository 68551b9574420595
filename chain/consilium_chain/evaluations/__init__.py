"""The worth of a finished model: the documents that operators, hospitals, voters and servers exchange. Pure."""

"""What a finished model is worth: the documents that operators, hospitals, voters and servers exchange. Pure."""

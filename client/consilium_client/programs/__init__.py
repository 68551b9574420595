"""Model programs: any PyTorch model as a graph of operators, read and run without its author's code.

A program is a file of canonical JSON (`program`), and a file of weights. Its author makes both from a module
(`exporting`). A node reads the graph strictly (`program`), measures it before anything of it runs (`measuring`), and
interprets it, operator by operator, from a fixed list (`operators`, `interpreter`).
"""

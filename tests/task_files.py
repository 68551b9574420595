"""What task files of several rooms' tests have in common."""

# One numeric column and a label.
DATA = """
[data]
label = "sick"
classes = ["no", "yes"]
[[data.features]]
kind = "numeric"
name = "age"
min = 0.0
max = 120.0
"""

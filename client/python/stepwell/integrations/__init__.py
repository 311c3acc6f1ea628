"""Trainings of frameworks, one module each: pytorch, lightning, transformers, composer, keras, deepspeed, accelerate.

None imports its framework before what is in it is used. What goes wrong in one is a warning, once; the training
never sees it.
"""

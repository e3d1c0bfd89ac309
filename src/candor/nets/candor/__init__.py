"""The paper, section by section; nothing here knows data frames or training.

`candor.py` assembles the parts and names the file of each section. Sizes alone (`settings.py`) need no torch.
"""

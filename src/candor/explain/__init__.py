"""What a run and a forecast say of themselves, as plain data that the terminal, figures, report and service show.

`forecast` explains one forecast and reads one window; `run` explains a run and reads many. Nothing is drawn here.
"""

"""The widgets. Their modules import anywidget: they are imported when the first widget is shown (`outputs.py`)."""

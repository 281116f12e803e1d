from ._app import label_app as label_app
from ._desk import LabelDesk as LabelDesk
from ._desk import open_label_desk as open_label_desk
from ._subject import LabelFolder as LabelFolder
from ._subject import LabelSubject as LabelSubject
from ._subject import export_labels as export_labels
from ._subject import read_label_subject as read_label_subject

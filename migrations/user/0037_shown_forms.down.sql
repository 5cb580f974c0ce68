DROP TRIGGER forget_shown_form ON objects;
DROP TRIGGER forget_shown_form ON activities;
DROP FUNCTION forget_shown_form;
DROP TABLE shown_forms;

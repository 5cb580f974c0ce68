-- Activities and objects as they were last shown to a reader of the feed: a page copies them instead of making each again.
-- A form counts for the revisions that it was made of and for nothing else; it is made again when it is missing. So it needs no
-- WAL, and no backup has it.
CREATE UNLOGGED TABLE shown_forms (
    id                uuid PRIMARY KEY, -- of the activity or object
    reader            text NOT NULL,    -- the version of the form, and the languages of its reader
    activity_revision xid,              -- xmin of the activity; null: the form is an object's
    object_revision   xid,              -- xmin of the object; null: it was not stored
    form              text NOT NULL
);

-- Words that are edited, deleted or withdrawn go at once, whoever changes the row.
CREATE FUNCTION forget_shown_form() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM shown_forms WHERE id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_shown_form AFTER UPDATE OF raw OR DELETE ON activities FOR EACH ROW EXECUTE FUNCTION forget_shown_form();
CREATE TRIGGER forget_shown_form AFTER UPDATE OF raw OR DELETE ON objects FOR EACH ROW EXECUTE FUNCTION forget_shown_form();

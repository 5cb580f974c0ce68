-- An object's words as readers are shown them, where they differ from raw: no reader gets HTML as another server sent it.
ALTER TABLE objects ADD COLUMN readable jsonb; -- null: not made yet; it is made when the object is next read

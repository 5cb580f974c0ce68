package vocab

// WordsOf returns the texts of an object that a search looks through: its content as plain text,
// its plain source, its name and summary, and the names of its tags.
func WordsOf(d Doc) (texts []string) {
	for _, text := range []string{contentText(d, d.Text("content")), authorsText(d), PlainText(d.Text("name")), PlainText(d.Text("summary"))} {
		if text != "" {
			texts = append(texts, text)
		}
	}
	for _, tag := range d.Subs("tag") {
		if name := tag.Text("name"); name != "" {
			texts = append(texts, name)
		}
	}
	return texts
}

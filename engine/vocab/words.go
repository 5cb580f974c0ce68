package vocab

// WordsOf returns the texts of an object that a muted keyword may be in: its content, name and
// summary as plain text in every language, its plain source, and the names of its tags.
func WordsOf(d Doc) (texts []string) {
	add := func(text string) {
		if text != "" {
			texts = append(texts, text)
		}
	}
	add(authorsText(d))
	for _, w := range wordings {
		said := d.Text(w.name)
		add(w.plainText(d, said))
		languages := languagesOf(d, w.name)
		for tag := range languages {
			if translated := languages.Text(tag); translated != said {
				add(w.plainText(d, translated))
			}
		}
	}
	for _, tag := range d.Subs("tag") {
		add(tag.Text("name"))
	}
	return texts
}

// plainText returns a text of the property in d, in one language, as plain text.
func (w wording) plainText(d Doc, text string) string {
	if w.name == "content" {
		return contentText(d, text)
	}
	return PlainText(text)
}

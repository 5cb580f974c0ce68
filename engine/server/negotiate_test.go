package server

import (
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/vocab"
)

func TestDocumentsAreServedInTheFormThatIsAskedFor(t *testing.T) {
	t.Parallel()
	const (
		short   = vocab.ActivityJSON
		long    = vocab.MediaType
		refused = ""
	)
	for _, c := range []struct {
		name   string
		accept []string
		want   string
	}{
		{"no Accept", nil, short},
		{"an empty Accept", []string{""}, short},
		{"anything", []string{"*/*"}, short},
		{"any application", []string{"application/*"}, short},
		{"OB-02 JSON-LD with the profile", []string{long}, long},
		{"OB-02 with a quality", []string{long + ";q=0.9"}, long},
		{"OB-02 in single quality before profile", []string{`application/ld+json;q=0.5;profile="https://www.w3.org/ns/activitystreams"`}, long},
		{"OB-02 one of several profiles", []string{`application/ld+json; profile="https://www.w3.org/ns/activitystreams http://www.w3.org/ns/json-ld#compacted"`}, long},
		{"JSON-LD without profile", []string{"application/ld+json"}, long},
		{"OB-03 activity+json", []string{short}, short},
		{"in capitals", []string{"Application/Activity+JSON"}, short},
		{"with a charset", []string{short + "; charset=utf-8"}, short},
		{"both alike", []string{long + ", " + short}, short},
		{"the better one", []string{short + ";q=0.5, " + long}, long},
		{"in several lines", []string{"text/html", long}, long},
		{"D15 a browser", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}, short},
		{"anything but the short one", []string{short + ";q=0, */*"}, long},
		{"D15 only HTML", []string{"text/html"}, refused},
		{"D15 only JSON", []string{"application/json"}, short},
		{"D15 JSON, and JSON-LD with the profile", []string{"application/json, " + long}, long},
		{"only XML", []string{"application/xml"}, refused},
		{"another profile", []string{`application/ld+json; profile="https://schema.org"`}, refused},
		{"nothing", []string{"*/*;q=0"}, refused},
		{"HTML, and nothing else", []string{"text/html, */*;q=0"}, refused},
		{"PAR-16 two profiles", []string{`application/ld+json; profile="https://www.w3.org/ns/activitystreams"; profile="x"`}, short},
		{"nothing but nonsense", []string{"nonsense"}, short},
		{"nonsense beside HTML", []string{"nonsense, text/html"}, refused},
		{"a quality beyond bounds", []string{"text/html, */*;q=7"}, refused},
		{"a quality that is no number", []string{"*/*;q=NaN, text/html"}, refused},
		{"a comma within quotes", []string{`application/ld+json; profile="a,*/*"`}, refused},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, ok := chooseOffer(c.accept, documents)
			if ok != (c.want != refused) || ok && got.send != c.want {
				t.Errorf("choose(%q) = %q, %t, want %q", c.accept, got.send, ok, c.want)
			}
		})
	}
}

func FuzzAccept(f *testing.F) {
	f.Add(`application/ld+json; profile="https://www.w3.org/ns/activitystreams", */*;q=0.1`)
	f.Add(`a/b;c="\`)
	f.Add(strings.Repeat(",", 100))
	f.Fuzz(func(t *testing.T, accept string) {
		o, ok := chooseOffer([]string{accept}, documents)
		if ok && o.send != vocab.ActivityJSON && o.send != vocab.MediaType {
			t.Errorf("choose(%q) = %q", accept, o.send)
		}
	})
}

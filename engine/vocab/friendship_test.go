package vocab

import "testing"

func TestParseFriendship(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"friendOf": FriendOf, "lw:friendOf": FriendOf, "https://lightwebbrowser.org/ns/friendOf": FriendOf, "https://lightwebbrowser.org/ns#friendOf": FriendOf,
		"closeFriendOf": CloseFriendOf, "https://lightwebbrowser.org/ns/closeFriendOf": CloseFriendOf,
		"": "", "following": "", "FriendOf": "", "lw:lw:friendOf": "", "https://evil.example/ns/friendOf": "", "https://lightwebbrowser.org/ns/": "",
	} {
		if kind, ok := ParseFriendship(value); ok != (want != "") || ok && kind != want {
			t.Errorf("ParseFriendship(%q) = %q, %t, want %q", value, kind, ok, want)
		}
	}
}

func TestFriendshipOf(t *testing.T) {
	t.Parallel()
	const bob, alice ID = "https://p.example/bob", "https://here.example/alice"
	for _, c := range []struct {
		name, body string
		want       Friendship
		ok         bool
	}{
		{"as it is written", string(Friendship{CloseFriendOf, bob, alice}.Doc().JSON()), Friendship{CloseFriendOf, bob, alice}, true},
		{"with the type embedded", `{"relationship":{"id":"https://lightwebbrowser.org/ns/friendOf"},"subject":{"id":"https://p.example/bob"},"object":["https://here.example/alice"]}`, Friendship{FriendOf, bob, alice}, true},
		{"of two types", `{"relationship":["lw:friendOf","lw:closeFriendOf"],"subject":"https://p.example/bob"}`, Friendship{Subject: bob}, false},
		{"of no type", `{"relationship":7}`, Friendship{}, false},
	} {
		d, err := ParseDoc([]byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if f, ok, err := FriendshipOf(d); err != nil || ok != c.ok || f != c.want {
			t.Errorf("%s: %+v, %t, %v; want %+v, %t", c.name, f, ok, err, c.want, c.ok)
		}
	}
	for _, several := range []string{`{"relationship":"friendOf","subject":["https://p.example/a","https://p.example/b"]}`, `{"relationship":"friendOf","object":["https://p.example/a","https://p.example/b"]}`} {
		d, err := ParseDoc([]byte(several))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := FriendshipOf(d); err == nil {
			t.Errorf("%s is taken", several)
		}
	}
}

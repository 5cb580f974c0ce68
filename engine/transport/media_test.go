package transport

import "testing"

func TestMediaTypeIsActivity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		contentType string
		want        bool
	}{
		{`application/activity+json`, true},
		{`application/activity+json; charset=utf-8`, true},
		{`Application/Activity+JSON`, true},
		{`application/ld+json; profile="https://www.w3.org/ns/activitystreams"`, true},
		{`application/ld+json;charset=utf-8;profile="https://www.w3.org/ns/activitystreams"`, true},
		{`application/ld+json`, false},
		{`application/ld+json; profile="https://www.w3.org/ns/json-ld#compacted"`, false},
		{`application/ld+json; profile="https://www.w3.org/ns/activitystreams#"`, false},
		{`application/ld+json; profile="https://www.w3.org/ns/activitystreams https://evil.example/"`, false},
		{`application/ld+json; profile="https://www.w3.org/ns/activitystreams"; profile="x"`, false}, // PAR-16: the profile is repeated
		{`application/ld+json; profile="x"; profile="https://www.w3.org/ns/activitystreams"`, false},
		{`application/ld+json; profile=https://www.w3.org/ns/activitystreams`, false},
		{`application/activity+json, text/html`, false},
		{`text/html, application/activity+json`, false},
		{`application/json`, false}, // OB-12: not a media type of ActivityPub
		{`text/plain`, false},
		{`image/png`, false},
		{`text/html; x="application/activity+json"`, false},
		{`multipart/form-data; boundary=application/activity+json`, false},
		{`application/activity+jsonx`, false},
		{`application/activity+json; ;`, false},
		{``, false},
	} {
		if got := IsActivityMediaType(tt.contentType); got != tt.want {
			t.Errorf("MediaTypeIsActivity(%q) = %v, want %v", tt.contentType, got, tt.want)
		}
	}
}

package engine_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// Two engines answer only signed requests. They do not wait for each other, and get each other's
// posts.
func TestSecureEnginesFederate(t *testing.T) {
	t.Parallel()
	a, b := enginetest.StartTwo(t, "LIGHTWEB_FEDERATION_SECURE_MODE=true")
	alice, stranger, bob := a.CreateUser(t, "alice"), a.CreateUser(t, "stranger"), b.CreateUser(t, "bob")
	mutual(t, alice, bob)
	create, note := bob.Post(t, map[string]any{"content": "for friends", "visibility": "followers"})
	alice.Await(t, "main", "the post", func(i enginetest.Item) bool { return i.ActivityURI == create })
	_, public := bob.Post(t, map[string]any{"content": "for all"})
	stranger.Do(t, "Like", map[string]any{"objectId": public}) // the engine has to fetch the post
	if got := stranger.Try(t, "Like", map[string]any{"objectId": note}); got.Status == http.StatusCreated {
		t.Errorf("PRV-16: a stranger likes what is for friends: %s", got.Body)
	}
	for _, url := range []string{bob.ID, bob.ID + "/outbox", bob.ID + "/followers", public, note, create} {
		if got := enginetest.Fetch(t, url); got.Status != http.StatusUnauthorized {
			t.Errorf("SG-21: %s is answered %d %s to anybody, want 401", url, got.Status, got.Body)
		}
	}
	for _, url := range []string{b.URL + "/actor", b.URL + "/.well-known/webfinger?resource=" + bob.ID} {
		if got := enginetest.Fetch(t, url); got.Status != http.StatusOK {
			t.Errorf("AC-05: %s is answered %d, want 200", url, got.Status)
		}
	}
}

// BenchmarkPrivateAndUnknownObjects asks an engine for private posts and for unknown ids in turn,
// a thousand times each, unsigned. It reports both medians. The time of an answer should not
// reveal more than the answer does.
func BenchmarkPrivateAndUnknownObjects(b *testing.B) {
	home := enginetest.Start(b, "LIGHTWEB_LOG_LEVEL=info")
	alice := home.CreateUser(b, "alice")
	var urls [2][]string
	for range 100 {
		_, note := alice.Post(b, map[string]any{"content": "for friends", "visibility": "followers"})
		urls[0] = append(urls[0], note)
		urls[1] = append(urls[1], alice.ID+"/objects/"+uuid.Must(uuid.NewV7()).String())
	}
	for b.Loop() {
		var took [2][]time.Duration
		for n := range 1000 {
			for kind := range urls {
				start := time.Now()
				got := enginetest.Fetch(b, urls[kind][n%100])
				took[kind] = append(took[kind], time.Since(start))
				if got.Status != http.StatusNotFound {
					b.Fatalf("%s is answered %d", urls[kind][n%100], got.Status)
				}
			}
		}
		for kind, name := range []string{"private-p50-µs", "unknown-p50-µs"} {
			slices.Sort(took[kind])
			b.ReportMetric(float64(took[kind][500].Nanoseconds())/1000, name)
		}
	}
}

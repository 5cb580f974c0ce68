package instance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecretsAreShownNowhere(t *testing.T) {
	s := Secret("hunter2")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("opened", "url", s)
	doc, err := json.Marshal(map[string]any{"url": s})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %s %q %x %d %+v %#v", s, s, s, s, s, struct{ U Secret }{s}, s) + log.String() + string(doc)
	if strings.Contains(shown, "hunter2") || strings.Contains(shown, "68756e74657232") {
		t.Errorf("%s shows the secret", shown)
	}
	if s.Reveal() != "hunter2" {
		t.Errorf("Reveal = %q, want the secret", s.Reveal())
	}
}

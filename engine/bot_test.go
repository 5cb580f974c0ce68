package engine_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// The bot of the docs reads a mention from another server, likes it, and replies.
func theExampleBotAnswers(t *testing.T, a, b *enginetest.Instance) {
	program := filepath.Join(t.TempDir(), "bot")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../docs/examples/bot/bot.go").CombinedOutput(); err != nil {
		t.Fatalf("build the bot: %v\n%s", err, out)
	}
	host, guest := a.CreateUser(t, "botty"), b.CreateUser(t, "gustav")
	var token struct{ Token string }
	a.Run(t, "user", "token", "create", host.Name, "--scope", "llm", "--json").Decode(t, &token)
	open := func() float64 { return a.Metric(t, `lightweb_sockets{kind="sse"}`) }
	before := open()
	ctx, stop := context.WithCancel(t.Context())
	bot := exec.CommandContext(ctx, program)
	var said strings.Builder
	bot.Env, bot.Stderr = append(os.Environ(), "API="+a.URL, "TOKEN="+token.Token), &said
	if err := bot.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = bot.Wait() // the error says that the bot was killed
		if t.Failed() {
			t.Logf("the bot said %s", said.String())
		}
	}()
	enginetest.Eventually(t, "the bot listens", func() bool { return open() > before })
	_, note := guest.Post(t, map[string]any{"content": "is " + host.Handle + " there?", "visibility": "public"})
	answer := guest.Await(t, "notifications", "the answer", func(i enginetest.Item) bool { return i.Type == "Create" && i.ActorURI == host.ID })
	shown := string(guest.Ask(t, http.MethodGet, "/api/feed/"+answer.ID, nil).Body)
	if !strings.Contains(shown, "Hello "+guest.Handle+"! 0 posts stand before yours.") {
		t.Errorf("the bot answers %s", shown)
	}
	guest.Await(t, "notifications", "the Like of "+note, func(i enginetest.Item) bool { return i.Type == "Like" && i.ActorURI == host.ID })
}

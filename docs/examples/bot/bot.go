//go:build ignore

// Bot likes and answers every post that mentions its user. A token of scope llm is enough for it:
//
//	API=https://example.org TOKEN=lw_alice_… go run docs/examples/bot/bot.go
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

type object = map[string]any

func main() {
	for last := ""; ; time.Sleep(3 * time.Second) { // a stream ends when the engine ends, and is then opened again
		events := bufio.NewScanner(ask("GET", "/api/events", "", "Last-Event-ID", last))
		for events.Scan() {
			data, _ := strings.CutPrefix(events.Text(), "data: ")
			var e struct {
				ID, Type string
				Payload  struct{ EventID, ActorURI, ObjectURI string }
			}
			if json.Unmarshal([]byte(data), &e) != nil || e.ID == "" {
				continue
			}
			if last = e.ID; e.Type != "mention.received" {
				continue
			}
			who, thread := read("/api/actors?uri=", e.Payload.ActorURI), read("/api/objects/thread?uri=", e.Payload.ObjectURI)
			before, _ := thread["ancestors"].([]any)
			dispatch(e.Payload.EventID, "Like", object{"objectId": e.Payload.ObjectURI})
			dispatch(e.Payload.EventID, "Reply", object{"objectId": e.Payload.ObjectURI, "content": fmt.Sprintf("Hello %v! %d posts stand before yours.", who["handle"], len(before))})
		}
	}
}

// dispatch performs an action only once, even if the event arrives again. It names the event
// that caused the action. So the engine refuses further actions when bots of one user have
// answered each other for a while. It does not stop bots of two users.
func dispatch(event, action string, params object) {
	body, _ := json.Marshal(object{"action": action, "params": params})
	ask("POST", "/api/activity", string(body), "Idempotency-Key", action+event, "Lightweb-Caused-By", event).Close()
}

func read(path, uri string) (answer object) {
	body := ask("GET", path+url.QueryEscape(uri), "")
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		log.Print(err)
	}
	return answer
}

// ask sends a request, and returns the body of the response. The parameter header holds the
// names and values of header fields in turn.
func ask(method, path, body string, header ...string) io.ReadCloser {
	r, err := http.NewRequest(method, os.Getenv("API")+path, strings.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	for header = append(header, "Authorization", "Bearer "+os.Getenv("TOKEN"), "Content-Type", "application/json"); len(header) > 0; header = header[2:] {
		if header[1] != "" {
			r.Header.Set(header[0], header[1])
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode > 299 {
		log.Print(method, " ", path, ": ", err, answer)
		return io.NopCloser(strings.NewReader(""))
	}
	return answer.Body
}

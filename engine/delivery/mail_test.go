package delivery

import "testing"

func TestMailIsKeptUntilItIsDelivered(t *testing.T) {
	t.Parallel()
	m, got := newMail(), ""
	say := func(s string) func() { return func() { got += s } }
	if !m.post(say("a")) {
		t.Error("mail before the beginning is refused")
	}
	if _, ok := ask(m, func() int { return 1 }); ok {
		t.Error("a question is answered before the beginning")
	}
	m.open()
	m.post(say("b"))
	if m.deliver(); got != "ab" {
		t.Errorf("delivered %q, want ab", got)
	}
	m.post(say("c"))
	if m.close(); got != "abc" {
		t.Errorf("delivered %q at the end, want abc", got)
	}
	if _, ok := ask(m, func() int { return 1 }); ok || m.post(say("d")) {
		t.Error("mail after the end is taken")
	}
}

func TestAQuestionIsAnswered(t *testing.T) {
	t.Parallel()
	m := newMail()
	m.open()
	done := make(chan int)
	go func() {
		n, _ := ask(m, func() int { return 7 })
		done <- n
	}()
	<-m.arrived
	m.deliver()
	if n := <-done; n != 7 {
		t.Errorf("answer %d, want 7", n)
	}
}

package client_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/lightweb/lightweb/engine/enginetest"
)

// stubs take the places of MLS, whose states are plain objects here, and of the browser's store.
var stubs = map[string]string{
	"mls.js": `
let made = 0
Uint8Array.prototype.toHex ??= function () { return String(this) }
export const makeKey = async () => ({ publicKey: new Uint8Array([1]) })
export const makePackage = async () => ({})
export const beginGroup = async (id) => ({ state: { group: id, epoch: 0, members: [{ actor: "me", key: "own", leaf: 0 }] }, groupInfo: id })
export const membersOf = ({ members }) => members
export const actorsOf = ({ members }) => members.map(({ actor }) => actor)
export const epochOf = ({ epoch }) => epoch
export const isActive = () => true
export const readPackage = (content) => ({ actor: content, key: content, isReadable: true })
export const headerOf = (message) => JSON.parse(message)
export const commit = async ({ group, epoch, members }, { add }) => ({
  commit: JSON.stringify({ group, epoch, n: made++ }), groupInfo: "", welcomes: [],
  state: { group, epoch: epoch + 1, members: [...members, ...add.map((actor) => ({ actor, key: actor, leaf: 1 }))] },
})
export const encrypt = async (state) => ({ state, message: JSON.stringify({ group: "none", n: made++ }) })`,
	"store.js": `
const of = { device: new Map(), packages: new Map(), groups: new Map(), messages: new Map() }
const keyOf = { device: "name", packages: "ref", groups: "id", messages: "seq" }
export const openStore = async () => ({
  find: async (name, key) => structuredClone(of[name].get(key)),
  list: async (name) => structuredClone([...of[name].values()]),
  messagesOf: async () => [],
  async write(records, removed = {}) {
    for (const [name, all] of Object.entries(records)) for (const record of all) of[name].set(record[keyOf[name]], structuredClone(record))
    for (const [name, keys] of Object.entries(removed)) for (const key of keys) of[name].delete(key)
  },
})`,
}

// prelude imports the client's modules from a folder. The function serve answers requests.
const prelude = `
globalThis.sessionStorage = { getItem: () => null }
Object.defineProperty(globalThis, "navigator", { value: { locks: { request: (name, work) => work() } } })
Set.prototype.difference ??= function (other) { return new Set([...this].filter((one) => !other.has(one))) }
Set.prototype.intersection ??= function (other) { return new Set([...this].filter((one) => other.has(one))) }
const at = (file) => import(process.argv[1] + "/" + file)
const { openStore } = await at("store.js"), { Group, newGroup } = await at("group.js"), { openDevice } = await at("device.js")
let serve
globalThis.fetch = async (path, { method, body }) => {
	const { status = 200, ...said } = await serve(method, path.split("?")[0], body && JSON.parse(body))
	return new Response(JSON.stringify(said), { status })
}
const attempt = (work) => work.catch(({ code, message }) => code ?? message)
`

// playModules runs a script against the client's modules, with the stubs in place. It reads the
// JSON that the script prints into got.
func playModules(t *testing.T, script string, got any) {
	t.Helper()
	node, folder, files := enginetest.Node(t), t.TempDir(), maps.Clone(stubs)
	for _, name := range []string{"api.js", "group.js", "device.js"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"type":"module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, "--input-type=module", "-e", prelude+script, folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// The answer to the first request of a conversation gets lost, and the user begins again. The
// conversation goes on if the server has made it, and is made if not. Once the other one is in it,
// the next one is a conversation of its own.
func TestAConversationWhoseBeginningWasInterruptedGoesOn(t *testing.T) {
	var got []map[string]any
	playModules(t, `
const told = []
for (const isMade of [true, false]) {
	const made = []
	let left = 1
	serve = (method, path, body) => {
		if (path === "/api/keypackages/claim") return { items: body.actor === "me" ? [] : [{ content: body.actor }] }
		if (path.endsWith("/log")) return { items: [], more: false }
		if (path.endsWith("/commits")) return { seq: 1 }
		if (method === "GET") return { items: made.map((groupId, n) => ({ id: "c" + n, mode: "encrypted", groupId })) }
		const isLost = left-- > 0, isTaken = made.includes(body.groupInfo)
		if (!isTaken && (isMade || !isLost)) made.push(body.groupInfo)
		if (isLost) throw new TypeError("lost")
		return isTaken ? { status: 409, error: "group_taken" } : { id: "c" + (made.length - 1) }
	}
	const device = await openDevice("me"), begun = []
	for (let n = 0; n < 3; n++) begun.push(await attempt(device.begin("bob" + isMade)))
	told.push({ begun, made: made.length })
}
console.log(JSON.stringify(told))`, &got)
	want := map[string]any{"begun": []any{"lost", "c0", "c1"}, "made": 2.0}
	if !reflect.DeepEqual(got, []map[string]any{want, want}) {
		t.Errorf("%v, want %v each time", got, want)
	}
}

// A message that waits in the group before a reset was never sealed, so it was never sent. If the
// log has forgotten some entries meanwhile, the message still goes on by itself.
func TestAMessageThatWasNeverSealedIsNotHeld(t *testing.T) {
	var got []map[string]any
	playModules(t, `
serve = (method, path) => path.endsWith("/messages") ? { status: 409, error: "past_epoch" } : { items: [{ seq: 9, kind: "proposal", content: '{"group":"none"}' }], more: false }
const kept = { ...newGroup("g", { epoch: 8, members: [{ actor: "me" }, { actor: "bob" }] }), read: 3, sent: [{ text: "hello", to: ["me", "bob"] }, { text: "sealed", message: '"first"' }] }
await new Group(await openStore(), "me", "c", kept).readLog()
const marks = kept.sent.map(({ mayBeSent = false }) => mayBeSent)
await new Group(await openStore(), "me", "c", kept).catchUp()
console.log(JSON.stringify([{ marks, isHeld: kept.sent[0].isHeld, isSealed: Boolean(kept.sent[0].message) }]))`, &got)
	want := []map[string]any{{"marks": []any{false, true}, "isHeld": false, "isSealed": true}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A message waits until its epoch is too old. It is sealed anew, unless the log has forgotten some
// of the entries since: it may have been one of them. Then the user decides.
func TestAMessageThatMayHaveBeenSentIsNotSentAgainUnasked(t *testing.T) {
	var got []map[string]any
	playModules(t, `
const told = []
for (const next of [4, 9]) {
	let answer = { status: 409, error: "past_epoch" }
	serve = (method, path) => path.endsWith("/messages") ? answer : { items: [{ seq: next, kind: "proposal", content: '{"group":"none"}' }], more: false }
	const kept = { ...newGroup("g", { epoch: 8, members: [{ actor: "me" }, { actor: "bob" }] }), read: 3, sent: [{ text: "hello", message: '"first"' }] }
	const group = new Group(await openStore(), "me", "c", kept), [message] = kept.sent
	await group.catchUp()
	const { isHeld = false } = message, isSealedAnew = Boolean(message.message) && message.message !== '"first"'
	answer = { seq: 12 }
	await group.decide(message.id, true)
	await group.catchUp()
	told.push({ isHeld, isSealedAnew, seq: message.seq, waits: Boolean(message.isHeld) })
}
console.log(JSON.stringify(told))`, &got)
	want := []map[string]any{{"isHeld": false, "isSealedAnew": true, "seq": 12.0, "waits": false}, {"isHeld": true, "isSealedAnew": false, "seq": 12.0, "waits": false}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

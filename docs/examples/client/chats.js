// Encrypted conversations as they are shown. What is written and who is in one is what the device of
// this browser has decrypted: the server knows neither. All of it is set as text.

import { read, request } from "./api.js"
import { fillName, fillTime, make, put } from "./draw.js"
import { sanitize } from "./html.js"
import { $, arrange } from "./page.js"

const shownMessages = 300

let me = "" // the actor
let own = null // the device of this browser, as soon as it is there
let isMissing = false // whether there is no ts-mls

export function begin(actor) {
  end()
  me = actor
}

export function end() {
  me = ""
  own = null
  people.clear()
}

export function device() {
  if (!own) throw new Error("Encrypted chats are not ready yet.")
  return own
}

/** Lets the device do what others wait for, and counts what is unread; returns whether something waits. */
export async function sync() {
  const actor = me
  if (!actor || isMissing || !(own ??= await openFor(actor))) return false
  const failure = await own.sync().catch((failed) => failed)
  const all = await own.list()
  showUnread(all)
  if (failure) throw failure // what else could be done is done
  return all.some(({ group }) => group && !group.lost && (group.pending || group.sent.some(({ seq, isHeld }) => !seq && !isHeld)))
}

function showUnread(all) {
  const count = all.reduce((sum, { unread }) => sum + unread, 0)
  $("unread-chats").textContent = `${count} new`
  $("unread-chats").hidden = !count
}

/** Opens the device, unless the page is served without ts-mls or another user signs in meanwhile. */
async function openFor(actor) {
  const { openDevice } = await import("./device.js").catch(() => ({}))
  isMissing = !openDevice
  const opened = await openDevice?.(actor)
  return actor === me ? opened : null
}

export const addressOf = (id) => `#/chat?${new URLSearchParams({ uri: id })}`

/** Hides what stands around the list, until a chat or the chats are loaded. */
export function hideForms() {
  for (const id of ["beginner", "lack", "chat", "writer"]) $(id).hidden = true
  $("list").ariaLive = null
}

const people = new Map() // what is known of actors, by their ids

/** Finds the names of actors; one that cannot be found has its id alone. */
async function findPeople(uris) {
  for (const uri of uris) {
    if (!people.has(uri)) people.set(uri, await read("/api/actors", { uri }).catch(() => ({ uri })))
  }
}

const nameOf = (uri) => (uri === me ? "you" : people.get(uri)?.handle || uri)
const actorsOf = (devices) => [...new Set(devices.map(({ actor }) => actor))]
const listOf = (uris) => new Intl.ListFormat("en").format(uris.map(nameOf))

export async function loadChats(shown, isShown) {
  if (isMissing) return showLack()
  if (!own) return // sync draws it anew
  const all = await own.list()
  await findPeople(all.flatMap(({ devices }) => actorsOf(devices)))
  if (!isShown()) return
  $("beginner").hidden = false
  arrange(shown, all.map(({ id }) => [id, () => make("chat-link")]))
  for (const c of all) fillChat(shown.items.get(c.id), c)
}

const showLack = () => { $("lack").hidden = false }

function fillChat(li, { id, unread, devices, group, createdAt }) {
  const others = actorsOf(devices).filter((actor) => actor !== me)
  const link = li.querySelector(".chat")
  link.href = addressOf(id)
  link.textContent = others.length ? listOf(others) : group ? "You alone" : `Chat of ${new Date(createdAt).toLocaleString()}`
  put(li, ".new", `${unread} new`)
  li.querySelector(".new").hidden = !unread
  put(li, ".state", stateOf({ group, devices }))
}

const stateOf = ({ group, devices }) =>
  (!group ? "Encrypted. This browser has no keys of it." : losses[group.lost] ?? `Encrypted. ${actorsOf(devices).length} members.`)

export async function loadChat(shown, isShown) {
  if (isMissing) return showLack()
  if (!own) return
  const c = await own.find(shown.uri)
  const said = c.group ? await own.messagesOf(c.group.id, Math.max(0, c.group.read - shownMessages)) : []
  await findPeople([...actorsOf(c.devices), ...said.flatMap(({ sender, added = [], removed = [], changed = [] }) => [sender, ...added, ...removed, ...changed])].filter(Boolean))
  if (!isShown()) return
  showAbout(c, closures[c.status] ?? (c.group ? losses[c.group.lost] : "This browser has no keys of this chat: another one of yours, or none, was let in."))
  const waiting = c.group?.sent ?? [], had = shown.items.size
  const isAtEnd = !had || innerHeight + scrollY > document.documentElement.scrollHeight - 100
  const added = arrange(shown, [...said.map((entry) => [entry.seq, () => drawEntry(entry)]), ...waiting.map((entry) => [keyOf(entry), () => drawEntry({ ...entry, sender: me })])])
  for (const entry of waiting) fillWaiting(shown.items.get(keyOf(entry)), entry)
  if (added && isAtEnd) $("writer").scrollIntoView({ block: "end" })
  $("list").ariaLive = "polite" // from now on screen readers read what comes
  await markRead(c, said.at(-1)?.seq)
}

const keyOf = ({ message, id }) => message ?? id // what is sealed anew is drawn anew

const holds = {
  true: "may be sent already: the server does not know any more",
  false: "not sent: others are in the chat now than when you wrote it",
}

function fillWaiting(li, { id, seq, waits, isHeld, mayBeSent }) {
  put(li, ".state", isHeld ? holds[Boolean(mayBeSent)] : seq || !waits ? "is being sent" : `waits: ${waits}`)
  li.querySelector(".held").hidden = !isHeld
  li.dataset.held = isHeld ? id : ""
}

const losses = {
  removed: "You are not a member any more.",
  missing_commits: "This browser has missed too much, and cannot read on.",
  bad_commit: "This browser cannot follow a change of the members, and cannot read on.",
}

const closures = {
  closed: "This chat is closed: nothing is sent any more.",
  reset_pending: "This chat waits until one of its members begins a new group: nothing is sent until then.",
  frozen: "The server of this chat told its members different things: nothing is sent any more.",
}

function showAbout({ id, devices, members, group, status }, trouble) {
  const actors = actorsOf(devices)
  $("chat").hidden = false
  $("lock").textContent = trouble || "Encrypted from end to end: the keys are in the browsers of its members alone."
  $("chat").querySelector("details").hidden = !group
  $("chat").querySelector("summary").textContent = actors.length === 1 ? "1 member" : `${actors.length} members`
  $("adder").hidden = $("writer").hidden = Boolean(trouble)
  const isAdmin = members.some(({ actor, role }) => actor === me && role === "admin")
  $("resetter").hidden = status !== "reset_pending" && !(isAdmin && group?.lost)
  const mayRemove = (actor) => !trouble && actor !== me && (isAdmin || members.some((m) => m.actor === actor && m.leaving))
  // Drawn anew only when it has changed: a button keeps its focus.
  const now = JSON.stringify([id, devices, isAdmin, trouble, members])
  if ($("members").dataset.shows === now) return
  $("members").dataset.shows = now
  $("members").replaceChildren(...actors.map((actor) => drawMember(actor, devices, mayRemove(actor))))
}

function drawMember(actor, devices, mayRemove) {
  const li = make("member")
  li.dataset.actor = actor
  fillName(li, { uri: actor, ...people.get(actor) })
  const keys = devices.filter((device) => device.actor === actor).map(({ key }) => key.slice(0, 32).match(/.{4}/g).join(" "))
  put(li, ".keys", `${keys.length === 1 ? "key" : "keys"} ${keys.join(", ")}`)
  const button = li.querySelector(".remove")
  button.hidden = !mayRemove
  button.ariaLabel = `Remove ${nameOf(actor)}`
  return li
}

function drawEntry(entry) {
  if (entry.added) return drawChange(entry)
  const li = make("message")
  li.classList.toggle("own", entry.sender === me)
  put(li, ".name", entry.sender ? nameOf(entry.sender) : "Somebody")
  fillTime(li, entry.at)
  put(li, ".words", entry.isUnreadable ? "This message cannot be read in this browser." : wordsOf(entry))
  return li
}

/** The words of a message. Of HTML, which other programs write, only the text is shown; a file is named and not opened. */
const wordsOf = ({ text, isHTML, files = [] }) =>
  [isHTML ? sanitize(text).textContent : text, ...files.map((name) => `A file, which is not opened: ${name}`)].filter(Boolean).join("\n")

function drawChange({ sender, added, removed, changed }) {
  const li = make("change"), by = sender === me ? "You" : sender ? nameOf(sender) : "Somebody"
  const done = Object.entries({ added, removed, "changed the devices of": changed }).filter(([, actors]) => actors.length)
  li.textContent = `${by} ${done.map(([what, actors]) => `${what} ${listOf(actors)}`).join(" and ") || "changed the keys"}.`
  return li
}

/** What is seen is read, for all programs of the user. */
async function markRead({ id, readSeq }, seq) {
  if (!(seq > readSeq) || document.hidden) return
  await request("PUT", `/api/conversations/${encodeURIComponent(id)}/read`, { seq })
  showUnread(await own.list())
}

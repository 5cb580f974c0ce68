// The client: who is signed in, which view is shown, and what happens meanwhile.

import { act, forgetSession, isSignedIn, listen, read, signIn, signInByPassword, signOut } from "./api.js"
import * as chats from "./chats.js"
import { drawItem, drawPerson, drawPost, fillPerson, fillPost } from "./draw.js"
import { $, arrange, attempt, coalesce, say, submit, whenSessionEnds } from "./page.js"

const feeds = ["main", "notifications", "requests"]
const views = {
  main: { title: "Feed", load: loadFeed }, notifications: { title: "Notifications", load: loadFeed },
  requests: { title: "Requests of strangers", load: loadFeed },
  chats: { title: "Encrypted chats", load: chats.loadChats }, chat: { title: "Encrypted chat", load: chats.loadChat, under: "chats" },
  people: { title: "People you follow", load: loadPeople }, thread: { title: "Thread", load: loadThread },
}

let view = null // what is shown: its name, its uri, and by key the elements of its list in their order
let stream = null // ends the stream of events

// Sign in and out

function begin() {
  for (const form of ["password-login", "login"]) $(form).hidden = isSignedIn()
  $("home").hidden = !isSignedIn()
  view = null
  if (!isSignedIn()) return $("password-login").elements.username.focus()
  stream = new AbortController()
  attempt(async () => {
    const me = await read("/api/me")
    $("me").textContent = me.handle
    chats.begin(me.uri)
    await syncChats()
  })
  for (const feed of feeds) attempt(() => countUnread(feed))
  attempt(() => listen(heed, stream.signal))
  route()
}

function end() {
  stream?.abort()
  chats.end()
  forgetSession()
  $("list").replaceChildren()
  begin()
}

whenSessionEnds(end)

$("login").addEventListener("submit", (event) => submit(event, async ({ token }) => {
  await signIn(token.trim())
  begin()
}))

$("password-login").addEventListener("submit", (event) => submit(event, async ({ username, password }) => {
  await signInByPassword(username.trim(), password)
  begin()
}))

$("logout").addEventListener("click", () => attempt(async () => {
  try { await signOut() } finally { end() }
}))

/** Takes a token out of the address, where the demonstration puts it: a fragment is never sent. */
async function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token")
  if (!token) return
  history.replaceState(null, "", location.pathname)
  stream?.abort()
  await attempt(() => signIn(token), $("login"))
}

// Views

addEventListener("hashchange", async () => {
  if (!location.hash.startsWith("#token=")) return isSignedIn() && route()
  await takeToken()
  begin()
})

function route() {
  if (view && !location.hash.startsWith("#/")) return // a place in the page, such as the skip link's
  const [name, query] = location.hash.slice(2).split("?")
  const isFirst = !view
  view = { name: name in views ? name : "main", uri: new URLSearchParams(query).get("uri"), items: new Map() }
  const { title, under = view.name } = views[view.name]
  document.title = `${title} · Lightweb`
  $("title").textContent = title
  $("composer").hidden = view.name !== "main"
  $("finder").hidden = view.name !== "people"
  chats.hideForms()
  for (const a of document.querySelectorAll("nav a")) a.ariaCurrent = a.hash === `#/${under}` ? "page" : null
  for (const id of ["more", "nothing"]) $(id).hidden = true
  $("list").replaceChildren()
  if (!isFirst) $("title").focus()
  attempt(refresh)
}

/** Loads what is shown anew. While it does, any number of further calls are one. */
const refresh = coalesce(async () => {
  const shown = view
  if (!shown) return
  await views[shown.name].load(shown, () => shown === view)
  if (shown === view) $("nothing").hidden = shown.items.size > 0
})

async function loadFeed(shown) {
  const page = await read("/api/feed", { feed: shown.name, unread: true })
  if (shown !== view) return
  showUnread(shown.name, page.unread)
  shown.readUpTo ??= page.readUpTo?.published ?? "0"
  const had = shown.items.size
  const keys = [...shown.items.keys()], last = keys.indexOf(page.items.at(-1)?.id)
  const older = last < 0 ? [] : keys.slice(last + 1) // else more has come than a page has: begin anew
  if (!older.length) shown.next = page.next
  const added = arrange(shown, [...page.items.map((item) => [item.id, () => newItem(shown, page, item)]), ...older.map((key) => [key])])
  if (had && added) say(`${added} new`)
  $("more").hidden = !shown.next
  await markRead(shown.name, page)
}

function newItem(shown, page, item) {
  const li = drawItem(item, page.actors, shown.name)
  li.querySelector(".new").hidden = !(Date.parse(item.published) > Date.parse(shown.readUpTo))
  if (item.object && li.dataset.uri) recheck(li.dataset.uri, [li])
  return li
}

$("more").addEventListener("click", () => attempt(async () => {
  const shown = view
  const page = await read("/api/feed", { feed: shown.name, cursor: shown.next })
  if (shown !== view) return
  shown.next = page.next
  arrange(shown, [...[...shown.items.keys()].map((key) => [key]), ...page.items.map((item) => [item.id, () => newItem(shown, page, item)])])
  $("more").hidden = !page.next
}))

async function loadThread(shown) {
  const { ancestors, item, replies, actors, truncated } = await read("/api/objects/thread", { uri: shown.uri })
  if (shown !== view) return
  const depths = new Map()
  arrange(shown, [...ancestors, item, ...replies].map((post) => [post.uri, () => drawPost(post, actors)]))
  for (const post of [...ancestors, item, ...replies]) {
    const li = shown.items.get(post.uri)
    fillPost(li, post, actors)
    depths.set(post.uri, (depths.get(post.inReplyTo) ?? -1) + 1)
    li.style.marginInlineStart = `${Math.min(depths.get(post.uri), 5) * 0.75}rem`
    if (post === item) li.ariaCurrent = "true"
  }
  if (truncated) say("The thread has more: open that of one of its ends.")
}

async function loadPeople(shown) {
  const people = new Map()
  for (let cursor; ;) {
    const { items, actors, next } = await read("/api/relationships", { type: "following", limit: 200, ...(cursor && { cursor }) })
    for (const { actorUri, status } of items) people.set(actorUri, { uri: actorUri, ...actors[actorUri], following: status })
    if (!(cursor = next)) break
  }
  if (shown.found) {
    const { relationship, ...found } = await read("/api/actors", { uri: shown.found })
    people.set(found.uri, { ...found, following: relationship.following })
  }
  if (shown !== view) return
  arrange(shown, [...new Set([shown.found, ...people.keys()])].filter(Boolean).map((uri) => [uri, drawPerson]))
  for (const [uri, person] of people) fillPerson(shown.items.get(uri), person)
}

$("finder").addEventListener("submit", (event) => submit(event, async ({ handle }) => {
  view.found = await findActor(handle)
  await refresh()
}))

let again // the timer that tries what waits

/** Lets the device of this browser do what others wait for, and shows what came of it. */
const syncChats = coalesce(async () => {
  clearTimeout(again)
  let isWaiting = true
  try {
    isWaiting = await chats.sync()
  } finally {
    if (isWaiting) again = setTimeout(() => isSignedIn() && attempt(syncChats), 15_000)
    if (isSignedIn() && view?.name.startsWith("chat")) await refresh()
  }
})

// What happens

function heed({ type, payload }) {
  if (type === "closed") return // the stream says so, and is opened again
  if (/^(hello|reset|mls\.|conversation\.|chatmessage\.|keypackages\.)/.test(type)) attempt(syncChats)
  if (type === "feed.read") return void attempt(() => countUnread(payload.feed))
  // What is taken back is named by its own id, and a deleted answer does not say what it answered.
  if (/^(undo\.|delete\.|reset$)/.test(type)) for (const uri of shownPosts().keys()) recheck(uri)
  else if (payload?.objectUri) recheck(payload.objectUri)
  if (type.startsWith("create.")) recheckAnswered(payload.objectUri)
  for (const feed of feeds) if (feed !== view?.name) attempt(() => countUnread(feed))
  attempt(refresh)
}

/** The posts of the list, by their ids: one may be there as itself and as a boost. */
const shownPosts = () => Map.groupBy([...$("list").children].filter((li) => li.dataset.uri), (li) => li.dataset.uri)

/** Asks how a post stands now, and says so where it is shown. */
async function recheck(uri, elements = shownPosts().get(uri)) {
  if (!elements) return
  try {
    const said = await read("/api/objects", { uri })
    for (const li of elements) fillPost(li, said, said.actors)
  } catch (failure) {
    if (failure.status === 404 || failure.status === 410) for (const li of elements) fillPost(li, { uri })
  }
}

/** An event has no more than ids: only the answer itself says which post has one more. */
async function recheckAnswered(uri) {
  const { inReplyTo } = await read("/api/objects", { uri }).catch(() => ({})) // it may be gone again
  if (inReplyTo) recheck(inReplyTo)
}

async function countUnread(feed) {
  showUnread(feed, (await read("/api/feed", { feed, limit: 1, unread: true })).unread)
}

function showUnread(feed, { count, more }) {
  const badge = $(`unread-${feed}`)
  badge.textContent = more ? `${count}+ new` : `${count} new`
  badge.hidden = !count
}

/** What is seen is read, for all programs of the user. */
async function markRead(feed, { items, readUpTo }) {
  const newest = items[0]?.id
  if (!newest || newest === readUpTo?.id || document.hidden) return
  await act("MarkRead", { feed, entryId: newest })
}

document.addEventListener("visibilitychange", () => document.hidden || !isSignedIn() || attempt(refresh))

// What the user does

$("composer").elements.visibility.addEventListener("change", ({ target }) => {
  const to = $("composer").elements.recipientUri
  to.required = target.value === "direct"
  to.closest("label").hidden = !to.required
})

$("composer").addEventListener("submit", (event) => submit(event, async ({ content, visibility, recipientUri }) => {
  const made = visibility === "direct" ? await act("SendMessage", { content, recipientUri }) : await act("CreateNote", { content, visibility })
  $("composer").elements.content.value = ""
  say(made.unresolved?.length ? `Posted. Nobody was found as ${made.unresolved.join(", ")}.` : "Posted.")
}))

const buttons = {
  like: (li, isDone) => [isDone ? "Unlike" : "Like", { objectId: li.dataset.uri }],
  boost: (li, isDone) => [isDone ? "Unboost" : "Boost", { objectId: li.dataset.uri }],
  follow: (li) => [li.dataset.followed ? "Unfollow" : "Follow", { actorUri: li.dataset.actor }],
  accept: (li) => ["AcceptRequest", { activityId: li.dataset.activity }],
  decline: (li) => ["DeclineRequest", { activityId: li.dataset.activity }],
}

$("list").addEventListener("click", ({ target }) => {
  const button = target.closest("button"), li = target.closest("li")
  if (button && li.dataset.held) return decide(button, li.dataset.held)
  if (button?.className === "reply") return toggleAnswer(li)
  if (!button || !(button.className in buttons)) return
  attempt(async () => {
    button.ariaBusy = "true" // not disabled: that would take the focus away
    try {
      await act(...buttons[button.className](li, button.ariaPressed === "true"))
    } finally { button.ariaBusy = null }
    await Promise.all([refresh(), recheck(li.dataset.uri)])
  })
})

/** Does what a button of a chat is for, once at a time. */
function press(button, work) {
  if (button.ariaBusy) return
  button.ariaBusy = "true"
  attempt(async () => {
    try { await work() } finally {
      button.ariaBusy = null
      await refresh()
    }
  })
}

/** Sends a message that is held, or drops it, as the user wants. */
function decide(button, message) {
  const { uri } = view
  press(button, () => chats.device().decide(uri, message, button.className === "send"))
}

function toggleAnswer(li) {
  const form = li.querySelector(".answer"), button = li.querySelector(".reply")
  form.hidden = !form.hidden
  button.ariaExpanded = String(!form.hidden)
  if (form.hidden) button.focus()
  else form.elements.content.focus()
}

$("list").addEventListener("submit", (event) => submit(event, async ({ content }) => {
  const li = event.target.closest("li")
  await act("Reply", { objectId: li.dataset.uri, content })
  event.target.reset()
  toggleAnswer(li)
  say("Your reply is sent.")
}))

const findActor = async (handle) => (await read("/api/actors", { handle: handle.trim() })).uri

$("beginner").addEventListener("submit", (event) => submit(event, async ({ handle }) => {
  const id = await chats.device().begin(await findActor(handle))
  event.target.reset()
  location.hash = chats.addressOf(id)
}))

$("adder").addEventListener("submit", (event) => submit(event, async ({ handle }) => {
  const { uri } = view
  await chats.device().add(uri, await findActor(handle))
  event.target.reset()
  await refresh()
}))

$("members").addEventListener("click", ({ target }) => {
  if (target.className !== "remove") return
  const { uri } = view
  attempt(async () => {
    await chats.device().remove(uri, target.closest("li").dataset.actor)
    await refresh()
  })
})

$("resetter").firstElementChild.addEventListener("click", ({ target }) => {
  const { uri } = view
  press(target, () => chats.device().reset(uri))
})

$("writer").addEventListener("submit", (event) => submit(event, async ({ text }) => {
  const { uri } = view
  await chats.device().say(uri, text)
  event.target.reset()
  await refresh()
}))

$("writer").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
  event.preventDefault()
  event.currentTarget.requestSubmit()
})

await takeToken()
begin()

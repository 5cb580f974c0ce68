// Draws posts, notices and people from templates of the page. Texts of others are set as text; HTML
// goes through sanitize. Nothing here asks the server.

import { link, sanitize } from "./html.js"

export const make = (template) => document.getElementById(template).content.firstElementChild.cloneNode(true)
export const put = (li, selector, text) => { li.querySelector(selector).textContent = text }
const nameOf = (actors, uri) => actors?.[uri]?.name || actors?.[uri]?.handle || uri || "Somebody"
const idOf = (thing) => thing?.id ?? thing

const audiences = { unlisted: "unlisted", local: "for this server", followers: "for followers", direct: "private" }

const reactions = {
  Accept: "lets you follow", Announce: "boosted your post", Dislike: "dislikes your post", Follow: "follows you",
  Like: "likes your post", Offer: "asks to be friends", QuoteRequest: "quotes your post", Reject: "does not let you follow",
}

/** What an author says of the user's answer, the object of the notice. */
const answers = { Accept: "approves of your answer", Reject: "does not want your answer" }

/** The element of an item of a feed: a post, or what somebody did towards the user. */
export function drawItem(item, actors, feed) {
  const isNotice = feed === "notifications" && item.type !== "Create"
  const li = isNotice ? drawNotice(item, actors) : drawPost({ ...item, uri: item.object?.id ?? idOf(item.activity.object) }, actors)
  if (item.type === "Announce" && !isNotice) {
    put(li, ".did", `${nameOf(actors, item.actorUri)} boosted`)
    li.querySelector(".did").hidden = false
  }
  for (const button of li.querySelectorAll(".accept, .decline")) button.hidden = feed !== "requests"
  li.dataset.activity = item.activityUri
  return li
}

/** The element of an object, as an item of a feed or /api/objects shows it. */
export function drawPost(shown, actors) {
  const li = make("post")
  fillPost(li, shown, actors)
  return li
}

/** Says anew what has changed of a post. A reply that is being written in it stays. */
export function fillPost(li, { uri, object, authorUri, visibility, ...counts }, actors) {
  li.dataset.uri = uri
  li.querySelector(".thread").href = threadOf(uri)
  fillContent(li.querySelector(".content"), object)
  if (!object) return
  fillName(li, { uri: authorUri, ...actors?.[authorUri] })
  put(li, ".audience", audiences[visibility] ?? "")
  fillTime(li, object.published)
  li.querySelector(".files").replaceChildren(...[object.attachment ?? []].flat().map(drawFile))
  if (!("likes" in counts)) return // a feed does not say: until somebody asked, nothing can be pressed
  li.querySelector(".like").disabled = false
  li.querySelector(".boost").disabled = visibility !== "public" && visibility !== "unlisted"
  put(li, ".like span", counts.likes || "")
  put(li, ".boost span", counts.boosts || "")
  put(li, ".thread span", counts.replies || "")
  li.querySelector(".like").ariaPressed = counts.liked
  li.querySelector(".boost").ariaPressed = counts.boosted
}

const filled = new WeakMap() // what a content shows: it is not drawn again for a new count

function fillContent(content, object) {
  const said = object ? JSON.stringify([object.name, object.summary, object.content]) : ""
  if (filled.get(content) === said) return
  filled.set(content, said)
  if (!object) {
    content.textContent = "This post is not here."
    return
  }
  const body = sanitize(object.content ?? "")
  if (object.name) {
    const title = document.createElement("h3")
    title.textContent = object.name
    body.prepend(title)
  }
  content.replaceChildren(object.summary ? drawWarning(object.summary, body) : body)
}

function drawWarning(summary, body) {
  const details = document.createElement("details")
  const warning = document.createElement("summary")
  warning.textContent = summary
  details.append(warning, body)
  return details
}

/** A file is a link: what a page loads by itself tells its server who reads. */
function drawFile(file) {
  const li = document.createElement("li"), a = document.createElement("a")
  a.textContent = file.name || "A file without a description"
  link(a, [file.url].flat().map((url) => url?.href ?? url)[0])
  li.append(a)
  return li
}

function drawNotice(item, actors) {
  const li = make("notice")
  const emoji = ["Like", "EmojiReact"].includes(item.type) && item.activity.content
  put(li, ".name", nameOf(actors, item.actorUri))
  const did = item.object && answers[item.type] || reactions[item.type]
  put(li, ".did", emoji ? `reacts to your post with ${emoji}` : did ?? `did something: ${item.type}`)
  fillTime(li, item.published)
  if (item.object?.content) {
    const excerpt = li.querySelector(".excerpt")
    excerpt.textContent = sanitize(item.object.content).textContent.slice(0, 200)
    excerpt.href = threadOf(item.object.id)
    excerpt.hidden = false
  }
  return li
}

const follows = { accepted: "You follow.", pending: "Your request waits for an answer.", rejected: "Your request was refused." }

export function drawPerson() { return make("person") }

export function fillPerson(li, { uri, name, handle, summary, following }) {
  li.dataset.actor = uri
  fillName(li, { uri, name, handle })
  put(li, ".state", follows[following] ?? "")
  put(li, ".follow", isFollowed(following) ? "Unfollow" : "Follow")
  li.dataset.followed = isFollowed(following) ? "yes" : ""
  if (summary) li.querySelector(".content").replaceChildren(sanitize(summary))
}

const isFollowed = (following) => following === "accepted" || following === "pending"

export function fillName(li, { uri, name, handle }) {
  put(li, ".name", name || handle || uri || "Somebody")
  put(li, ".handle", name && handle ? handle : "") // once
}

export function fillTime(li, published) {
  const time = li.querySelector("time")
  time.dateTime = published ?? ""
  time.textContent = published ? new Date(published).toLocaleString() : ""
}

export const threadOf = (uri) => `#/thread?${new URLSearchParams({ uri })}`

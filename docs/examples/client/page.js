// What the views of the page share: its list, its forms, and what it says.

import { isSignedIn } from "./api.js"

export const $ = (id) => document.getElementById(id)

/** Makes the list show these keys. An element that is there stays, with its focus; returns how many are new. */
export function arrange(shown, entries) {
  const before = shown.items
  shown.items = new Map(entries.map(([key, draw]) => [key, before.get(key) ?? draw()]))
  for (const [key, li] of before) if (!shown.items.has(key)) li.remove()
  let next = $("list").firstElementChild
  for (const li of shown.items.values()) {
    if (li === next) next = next.nextElementSibling
    else $("list").insertBefore(li, next)
  }
  return [...shown.items.keys()].filter((key) => !before.has(key)).length
}

/** Returns run, of which any number of calls while it runs are one more. */
export function coalesce(run) {
  let running = null, again = false
  return () => {
    again = true
    running ??= (async () => {
      try { while (again) { again = false; await run() } } finally { running = null }
    })()
    return running
  }
}

/** Does what a form asks for, once, with its fields by their names. */
export function submit(event, work) {
  event.preventDefault()
  const form = event.target
  if (form.ariaBusy) return
  form.ariaBusy = "true"
  return attempt(() => work(Object.fromEntries(new FormData(form))), form).finally(() => { form.ariaBusy = null })
}

let endSession
/** Names what is done when the server knows the session no more. */
export const whenSessionEnds = (end) => { endSession = end }

/** Does work, and tells why it cannot be done in the words of the server. */
export async function attempt(work, form) {
  for (const field of form?.elements ?? []) field.removeAttribute("aria-invalid")
  if (form) $("problem").textContent = ""
  try {
    return await work()
  } catch (failure) {
    if (!form && !isSignedIn()) return // it was asked before the user signed out
    tell(failure)
    const wrong = [...form?.elements ?? []].filter(({ name }) => failure.fields?.includes(name))
    for (const field of wrong) field.ariaInvalid = "true"
    wrong[0]?.focus()
    if (failure.status === 401 && isSignedIn()) endSession()
  }
}

function tell(failure) {
  const { message, wait, requestId } = failure
  const known = failure instanceof TypeError ? `The server cannot be reached: ${message}` : message
  $("problem").textContent = [known, wait && `Try again in ${wait} s.`, requestId && `Report this: ${requestId}.`].filter(Boolean).join(" ")
}

let quiet
export function say(text) {
  $("status").textContent = text
  clearTimeout(quiet)
  quiet = setTimeout(() => { $("status").textContent = "" }, 5000)
}

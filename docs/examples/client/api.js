// The engine's client API, as docs/api.md describes it: a session, requests, actions and events.

/** A refusal in the words of the server (RFC 9457). */
export class Problem extends Error {
  static async of(answer) {
    const said = await answer.json().catch(() => ({}))
    const problem = new Problem(said.detail ?? said.title ?? `The server answers ${answer.status}.`)
    problem.status = answer.status
    problem.code = said.error
    problem.conversation = said.conversation // how it stands, when that is why
    problem.fields = (said.errors ?? []).map(({ pointer }) => pointer.split("/").pop())
    problem.wait = Number(answer.headers.get("Retry-After"))
    problem.requestId = answer.status === 500 ? said.request_id : ""
    return problem
  }
}

/** Whether the server has refused for good. Else the request may have been done, or may be later. */
export const isRefused = (failure) => failure instanceof Problem && failure.status < 500 && ![401, 429].includes(failure.status)

// A session dies with its tab, and the token is not kept at all.
const stored = "lightweb session"
const bearer = (secret) => ({ Authorization: `Bearer ${secret}` })
const ownBearer = () => (isSignedIn() ? bearer(sessionStorage.getItem(stored)) : {})

export const isSignedIn = () => sessionStorage.getItem(stored) !== null
export const forgetSession = () => sessionStorage.removeItem(stored)

export const signIn = (token) => keepSession(request("POST", "/api/session", undefined, bearer(token)))

export const signInByPassword = (username, password) => keepSession(request("POST", "/api/session", { username, password }))

async function keepSession(answer) {
  const { session } = await answer
  sessionStorage.setItem(stored, session)
}

export const signOut = () => request("DELETE", "/api/session").finally(forgetSession)

// How often a busy server is asked, and for how many seconds at most it lets the page wait.
const tries = 3, longest = 30

/**
 * Asks the server of this page, and returns what it answers or throws a Problem. A server that is
 * busy is asked again when it says, if the request does the same however often it comes.
 */
export async function request(method, path, body, headers = {}) {
  const type = body && { "Content-Type": "application/json" }
  const mayRepeat = method === "GET" || "Idempotency-Key" in headers
  for (let left = tries - 1; ; left--) {
    const answer = await fetch(path, { method, body: body && JSON.stringify(body), headers: { ...ownBearer(), ...type, ...headers } })
    if (answer.ok) return answer.status === 204 ? null : answer.json()
    const problem = await Problem.of(answer)
    const isLater = problem.status === 503 && problem.wait > 0 && problem.wait <= longest
    if (!mayRepeat || !isLater || left === 0) throw problem
    await pause(Math.min(problem.wait + Math.random(), longest)) // at random, as listen does
  }
}

const pause = (seconds) => new Promise((again) => setTimeout(again, 1000 * seconds))

export const read = (path, parameters = {}) => request("GET", `${path}?${new URLSearchParams(parameters)}`)

/** Dispatches an action. When the answer is lost the same key says that it is the same request. */
export async function act(action, params) {
  const key = { "Idempotency-Key": crypto.randomUUID() }
  const send = () => request("POST", "/api/activity", { action, params }, key)
  try {
    return await send()
  } catch (failure) {
    if (failure instanceof Problem) throw failure
    return send()
  }
}

/** Hands every event of the user to handle, in order, until signal ends it or the session ends. */
export async function listen(handle, signal) {
  for (let last = ""; !signal.aborted;) {
    let wait = 0
    try {
      const resume = last && { "Last-Event-ID": last }
      const answer = await fetch("/api/events", { headers: { ...ownBearer(), ...resume }, signal })
      if (!answer.ok) throw await Problem.of(answer)
      for await (const event of events(answer.body)) {
        if (event.type === "hello") last ||= event.cursor
        if (event.type === "reset") last = event.cursor
        if (event.id) last = event.id
        handle(event)
      }
    } catch (failure) {
      if (signal.aborted) return
      if (failure.status === 401) throw failure
      wait = failure.wait || 0
    }
    // At random, so that the programs of all users do not come at once when a server is back.
    await pause(wait + 1 + 2 * Math.random())
  }
}

// The server writes a comment every 15 seconds: a stream without is dead.
const silence = 45_000

/** Reads a stream of server-sent events. EventSource would: but it cannot send a token. */
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = "", alarm
  try {
    for (;;) {
      alarm = setTimeout(() => reader.cancel(), silence)
      const { value, done } = await reader.read()
      clearTimeout(alarm)
      if (done) return
      const blocks = (rest + value).split("\n\n")
      rest = blocks.pop()
      for (const block of blocks) {
        const data = block.split("\n").find((line) => line.startsWith("data: "))
        if (data) yield JSON.parse(data.slice(6))
      }
    }
  } finally {
    clearTimeout(alarm)
    reader.cancel().catch(() => {}) // it may have failed, and said so
  }
}

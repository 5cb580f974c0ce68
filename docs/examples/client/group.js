// The group of one conversation, as this device has it. The log of the conversation says in which
// order all devices apply what was sent. Whatever is sent is kept first, so that a page which is
// closed in between sends the same again, and no key is used for two messages.

import { isRefused, read, request } from "./api.js"
import * as mls from "./mls.js"

/** The record of a group that the device has just begun or joined. */
export const newGroup = (id, state) => ({
  id, state, conversation: "", joined: mls.epochOf(state), read: 0, // the number up to which it has read the log
  last: 0, // the number of the last entry that is its own: what comes before is not of the next group
  sent: [], // messages of its own that are not in the log yet, or are held until the user says to send them
  // A group that begins a conversation also has "begins", the actor that is to be let in, and "groupInfo" until that is done.
  // A group that resets a conversation also has "resets", its id, and "groupInfo" until all members are let in.
  pending: null, // the commit of its own that was not answered yet, with the state after it
  lost: "", // why it cannot go on
})

export class Group {
  #store; #actor; #path; #kept

  constructor(store, actor, conversation, kept) {
    this.#store = store
    this.#actor = actor
    this.#path = `/api/conversations/${conversation}`
    this.#kept = kept
  }

  #keep(said = []) { return this.#store.write({ groups: [this.#kept], messages: said }) }

  /** Reads the log, and sends what waits. */
  async catchUp() {
    await this.settle()
    if (!this.#kept.lost) await this.#deliver()
  }

  /** Reads the log, and sends the commit that is pending. */
  async settle() {
    await this.readLog()
    if (this.#kept.pending && !this.#kept.lost) await this.#submit()
  }

  /** Reads the log, and sends nothing: all that is left to do in a group before a reset. */
  async readLog() {
    for (let more = true; more && !this.#kept.lost;) {
      const page = await read(`${this.#path}/log`, { after: this.#kept.read }).catch((failure) => {
        if (failure.code !== "not_member") throw failure
        this.#kept.lost = "removed"
        return { items: [] }
      })
      const said = []
      for (const entry of page.items) said.push(...await this.#readEntry(entry))
      await this.#keep(said)
      more = page.more
    }
  }

  /** Says something to all members. While the server cannot be reached it waits. */
  async say(text) {
    await this.catchUp()
    this.#expectMember()
    const message = {}
    await this.#seal(message, { text, at: new Date().toISOString() })
    this.#kept.sent.push(message)
    await this.#keep()
    await this.#deliver()
    await this.readLog()
  }

  /** Sends a message that is held to those who are members now, or drops it. */
  async decide(id, isSent) {
    this.#expectMember()
    const message = this.#kept.sent.find((one) => one.id === id && one.isHeld)
    if (!message) return
    if (isSent) Object.assign(message, { isHeld: false, mayBeSent: false, to: mls.actorsOf(this.#kept.state) })
    else this.#kept.sent = this.#kept.sent.filter((one) => one !== message)
    await this.#keep()
    await this.catchUp()
    if (isSent) await this.readLog() // it has the message now
  }

  /** Commits what choose wants of the members that there are: again, when another commit is first. */
  async change(choose) {
    for (let tries = 0; tries < 10; tries++) {
      await this.settle()
      this.#expectMember()
      const wanted = choose(mls.membersOf(this.#kept.state))
      if (!wanted.add?.length && !wanted.remove?.length) return
      this.#kept.pending = { key: crypto.randomUUID(), ...await mls.commit(this.#kept.state, wanted) }
      await this.#keep()
      if (await this.#submit()) return
    }
    throw new Error("Others change this conversation all the time. Try again.")
  }

  #expectMember() {
    if (this.#kept.lost) throw new Error("This browser cannot go on in this chat.")
  }

  /** Encrypts words in the present epoch. */
  async #seal(message, { text, at }) {
    const note = { type: "Note", id: `urn:uuid:${crypto.randomUUID()}`, attributedTo: this.#actor, mediaType: "text/plain", content: text, published: at }
    const create = { "@context": "https://www.w3.org/ns/activitystreams", type: "Create", id: `urn:uuid:${crypto.randomUUID()}`, actor: this.#actor, object: note }
    const made = await mls.encrypt(this.#kept.state, JSON.stringify(create))
    this.#kept.state = made.state
    Object.assign(message, { text, at, message: made.message })
  }

  /** Sends the messages that wait, in order. */
  async #deliver() {
    for (const message of this.#kept.sent.filter(({ seq, isHeld }) => !seq && !isHeld)) {
      if (!message.message) { // it waited in the group before a reset
        message.isHeld = !this.#isMeantFor(message.to ?? [])
        if (!message.isHeld) await this.#seal(message, message)
        await this.#keep()
        if (message.isHeld) continue
      }
      try {
        message.seq = (await request("POST", `${this.#path}/messages`, { message: message.message })).seq
      } catch (failure) {
        message.waits = failure.message
        if (failure.code === "past_epoch" && message.mayBeSent) this.#hold(message)
        else if (failure.code === "past_epoch") await this.#seal(message, message) // it has waited for too long
        else if (isRefused(failure) && failure.status !== 404 && !["reset_pending", "former_group"].includes(failure.code)) { // a host that is not found may come back
          this.#kept.sent = this.#kept.sent.filter((other) => other !== message)
          await this.#keep()
          throw failure
        }
        break
      } finally { await this.#keep() }
    }
  }

  /** Lets the user decide about a message that the others may have: its answer may be lost, and the log has forgotten it. */
  #hold(message) {
    Object.assign(message, { id: message.id ?? crypto.randomUUID(), to: mls.actorsOf(this.#kept.state), isHeld: true, message: undefined })
  }

  /** Whether what was written to some actors may go to the members: all are among them, and not the user alone. */
  #isMeantFor(actors) {
    const members = mls.actorsOf(this.#kept.state)
    return members.every((actor) => actors.includes(actor)) && (members.length > 1 || actors.length === 1)
  }

  /** Sends the commit that is pending, and returns whether it is taken. */
  async #submit() {
    const { key, state, ...sent } = this.#kept.pending
    const said = []
    try {
      const { seq } = await request("POST", `${this.#path}/commits`, sent, { "Idempotency-Key": key })
      said.push(...await this.#applyCommit({ seq, content: sent.commit, at: new Date().toISOString() }))
    } catch (failure) {
      if (!isRefused(failure)) throw failure // it may be taken: it is sent again under its key
      for (const entry of failure.conversation?.missing ?? []) said.push(...await this.#applyCommit(entry))
      this.#kept.pending = null
      if (failure.code !== "epoch_conflict") throw failure
    } finally { await this.#keep(said) }
    return this.#kept.state === state
  }

  /** Applies an entry of the log, and returns what it says. */
  async #readEntry(entry) {
    if (entry.seq <= this.#kept.read || this.#kept.lost) return []
    // A number that is left out is of an entry that the log has forgotten: one of its own, perhaps.
    if (entry.seq > this.#kept.read + 1) for (const message of this.#kept.sent) if (message.message) message.mayBeSent = true
    this.#kept.read = entry.seq
    if (mls.headerOf(entry.content).group === this.#kept.id) this.#kept.last = entry.seq
    if (entry.kind === "commit") return this.#applyCommit(entry)
    return entry.kind === "application" ? this.#openMessage(entry) : []
  }

  /** Applies a commit, unless it is applied already: a refusal may have brought it before the log. */
  async #applyCommit({ seq, at, content }) {
    const kept = this.#kept, { group, epoch } = mls.headerOf(content), present = mls.epochOf(kept.state)
    if (group !== kept.id || epoch < present) return []
    const before = mls.membersOf(kept.state)
    let sender = this.#actor
    if (kept.pending?.commit === content) kept.state = kept.pending.state
    else {
      if (epoch > present) return this.#lose("missing_commits")
      try {
        ({ state: kept.state, sender } = await mls.receive(kept.state, content))
      } catch {
        return this.#lose("bad_commit")
      }
    }
    kept.pending = null
    if (!mls.isActive(kept.state)) return this.#lose("removed")
    return [{ group: kept.id, seq, at, sender, ...compareMembers(before, mls.membersOf(kept.state)) }]
  }

  /** Notes that the device cannot go on, and tells the server why unless its user was removed. */
  async #lose(reason) {
    this.#kept.lost = reason
    const report = { conversationId: this.#path.split("/").pop(), reason, epoch: mls.epochOf(this.#kept.state) }
    if (reason !== "removed") await request("POST", "/api/mls/recovery-reports", report).catch(() => {}) // it is no more than a hint
    return []
  }

  async #openMessage({ seq, at, content, sender: told }) {
    const kept = this.#kept, said = { group: kept.id, seq, at }
    const own = kept.sent.find(({ message }) => message === content)
    if (own) {
      kept.sent = kept.sent.filter((other) => other !== own)
      return [{ ...said, sender: this.#actor, text: own.text }]
    }
    const { group, epoch } = mls.headerOf(content)
    if (group !== kept.id || epoch < kept.joined) return [] // from before this device was there
    try {
      const { state, sender, plaintext } = await mls.receive(kept.state, content)
      kept.state = state
      const object = wordsOf(JSON.parse(plaintext))
      return object ? [{ ...said, sender, ...object }] : []
    } catch {
      return [{ ...said, sender: told, isUnreadable: true }]
    }
  }
}

/** The actors that came, went, or have other devices than before. */
function compareMembers(before, after) {
  const actorsOf = (devices) => new Set(devices.map(({ actor }) => actor))
  const not = (others) => ({ key }) => !others.some((other) => other.key === key)
  const had = actorsOf(before), has = actorsOf(after)
  const touched = actorsOf([...after.filter(not(before)), ...before.filter(not(after))])
  return { added: [...has.difference(had)], removed: [...had.difference(has)], changed: [...touched.intersection(had).intersection(has)] }
}

/** The words of a Note, in a Create or alone, whether they are HTML, and the names of its files; nothing for others. */
function wordsOf(activity) {
  const object = activity?.type === "Create" ? activity.object : activity
  if (object?.type !== "Note") return null
  const files = [object.attachment ?? []].flat().map((file) => String(file?.name ?? file?.mediaType ?? "without a name").slice(0, 100))
  const text = typeof object.content === "string" ? object.content : ""
  return text || files.length ? { text, isHTML: object.mediaType !== "text/plain", files } : null
}

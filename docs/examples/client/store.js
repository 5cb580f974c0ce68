// What a device keeps, in the browser's IndexedDB: private keys are in no other place.

const stores = {
  device: "name", // its id and its signature key
  packages: "ref", // key packages with their private keys
  groups: "id", // the state of each group, and what it still has to send
  messages: ["group", "seq"], // what was said: a message can be decrypted once
}

const done = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result)
  request.onerror = () => reject(request.error)
})

/** Opens the store of an actor's device. */
export async function openStore(actor) {
  const opening = indexedDB.open(`lightweb ${actor}`, 1)
  opening.onupgradeneeded = () => {
    for (const [name, keyPath] of Object.entries(stores)) opening.result.createObjectStore(name, { keyPath })
  }
  const db = await done(opening)
  const at = (name) => db.transaction(name).objectStore(name)
  return {
    find: (name, key) => done(at(name).get(key)),
    list: (name) => done(at(name).getAll()),
    messagesOf: (group, after) => done(at("messages").getAll(IDBKeyRange.bound([group, after], [group, Infinity]))),

    /** Writes all records or none, and returns when they are on the disk. */
    write(records, removed = {}) {
      const tx = db.transaction(Object.keys(stores), "readwrite", { durability: "strict" })
      for (const [name, all] of Object.entries(records)) for (const record of all) tx.objectStore(name).put(record)
      for (const [name, keys] of Object.entries(removed)) for (const key of keys) tx.objectStore(name).delete(key)
      return new Promise((resolve, reject) => {
        tx.oncomplete = resolve
        tx.onabort = () => reject(tx.error)
      })
    },
  }
}

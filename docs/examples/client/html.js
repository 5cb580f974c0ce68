// The one way from HTML of a server into the page. The engine has sanitized `content` and `summary`
// already; this list is the client's own, so that a mistake there does no harm here, as is the
// Content-Security-Policy behind it.

const elements = new Set(("p br span a strong em b i u s del ins sub sup small code pre blockquote q ul ol li " +
  "dl dt dd h3 hr ruby rt rp").split(" "))
const schemes = new Set(["http:", "https:", "mailto:"])

/** Returns the text elements of html, without attributes but the addresses of links. */
export function sanitize(html) {
  const clean = document.createDocumentFragment()
  // A document that is only parsed runs nothing and loads nothing.
  copy(new DOMParser().parseFromString(html, "text/html").body, clean)
  return clean
}

function copy(from, to) {
  for (const node of from.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) to.append(node.data)
    if (node.nodeType !== Node.ELEMENT_NODE) continue
    const name = node.localName.replace(/^h[1-6]$/, "h3") // below the heading of a post
    if (!elements.has(name)) continue
    const element = document.createElement(name)
    if (name === "a") link(element, node.getAttribute("href"))
    copy(node, element)
    to.append(element)
  }
}

/** Makes a link that opens in a tab of its own and tells nobody where the reader comes from. */
export function link(a, href) {
  if (!URL.canParse(href) || !schemes.has(new URL(href).protocol)) return
  a.href = href
  a.rel = "nofollow noreferrer noopener"
  a.target = "_blank"
}

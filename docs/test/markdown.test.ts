import { assert, describe, it } from "vitest"
import { anchors, links, parse } from "./markdown.ts"

const page = `# The \`Tool\`, explained

See [one](guide/01.md#a-b "title"), ![two](<two.png>), [three][3] and \`[no](no.md)\`.

[3]: ./three.md

- a list
  \`\`\`ts
  const a = {
    b: 1
  }
  \`\`\`

\`\`\`\`md
\`\`\`ts
[no](no.md)
\`\`\`
\`\`\`\`

## Same
## Same
<a id="own"></a>
`

describe("markdown", () => {
  it("finds blocks with the line of the page they start on, without the indent of a list", () => {
    assert.deepStrictEqual(parse(page).blocks.map(({ info, line }) => [info, line]), [["ts", 9], ["md", 15]])
    assert.strictEqual(parse(page).blocks[0].code, "const a = {\n  b: 1\n}\n")
  })

  it("refuses a block that is never closed", () => {
    assert.throws(() => parse("a\n```ts\nb"), /line 3 is never closed/)
  })

  it("finds every kind of link, but none in code", () => {
    assert.deepStrictEqual(links(page), ["guide/01.md#a-b", "two.png", "./three.md"])
  })

  it("makes the anchors of headings and elements", () => {
    assert.deepStrictEqual([...anchors(page)], ["the-tool-explained", "same", "same-1", "own"])
  })
})

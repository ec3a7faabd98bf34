import { assert, describe, it } from "vitest"
import { svg } from "./picture.ts"
import * as Terminal from "./Terminal.ts"

const pictureOf = async (text: string) => {
  await using terminal = Terminal.open([process.execPath, "-e", `process.stdout.write(${JSON.stringify(text)})`], {
    columns: 20,
    rows: 5
  })
  await terminal.exit
  return svg(terminal.cells(), { title: "a <title>", columns: 20 })
}

const texts = (picture: string) =>
  [...picture.matchAll(/<text x="([\d.]+)" y="\d+" textLength="([\d.]+)"[^>]*>([^<]*)</g)].map(([, x, length, text]) =>
    [Math.round((Number(x) - 16) / 8.4), Math.round(Number(length) / 8.4), text] as const
  )

describe("svg", { timeout: 60_000 }, () => {
  it("puts each run of characters where it is, as wide as it is, whatever the font", async () => {
    const picture = await pictureOf("a <b> & \x1b[31mred\x1b[0m\r\n日本⠋x")
    assert.deepStrictEqual(texts(picture), [
      [0, 7, "a &lt;b&gt; &amp;"],
      [8, 3, "red"],
      [0, 2, "日"],
      [2, 2, "本"],
      [4, 1, "⠋"],
      [5, 1, "x"]
    ])
    assert.include(picture, `aria-label="a &lt;title&gt;"`)
  })

  it("draws bars without seams, and cuts off rows that are empty", async () => {
    const picture = await pictureOf("\x1b[2m███▌\x1b[0m\r\n")
    const bars = [...picture.matchAll(/<rect x="([\d.]+)"[^>]* width="([\d.]+)"[^>]* opacity="0.6"/g)]
    assert.deepStrictEqual(bars.map(([, x, width]) => [x, width]), [["16", "25.2"], ["41.2", "4.2"]])
    assert.match(picture, /^<svg [^>]*height="87"/)
  })

  it("keeps what a terminal does with colours", async () => {
    const picture = await pictureOf("\x1b[1;38;2;1;2;3mown\x1b[0m \x1b[7mturned\x1b[0m \x1b[38;5;208mcube")
    assert.match(picture, /fill="#010203" style="font-weight:bold">own</)
    assert.match(picture, /<rect [^>]*fill="#d5d9e0"\/><text [^>]*fill="#15171c">turned</)
    assert.match(picture, /fill="#ff8700">cube</)
  })
})

"""How the page looks: one style sheet, for light and dark, wide and narrow, screen and paper."""

from __future__ import annotations

from darkcfg.report.palette import COLOURS, ON_DARK

_SHEET = """
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%;scroll-padding-top:3.5rem}
body{margin:0;overflow-wrap:anywhere;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
header,main,footer{max-width:72rem;margin:0 auto;padding:0 1.5rem}
header{padding-top:2.5rem}
h1{font-size:2rem;line-height:1.2;margin:0 0 .25rem;letter-spacing:-.015em}
h2{font-size:1.35rem;line-height:1.3;margin:0 0 .75rem;letter-spacing:-.01em}
h3{font-size:1rem;margin:0 0 .5rem}
p{margin:0 0 .75rem;max-width:44rem}
a{color:var(--blue)}
.quiet,figcaption,.tiles dt,th{color:var(--quiet)}
p.quiet{font-size:.92rem}
code,pre,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.84rem}
nav{position:sticky;top:0;z-index:1;background:var(--paper);border-bottom:1px solid var(--rule);margin-top:1.5rem}
nav ul{max-width:72rem;margin:0 auto;padding:.6rem 1.5rem;list-style:none;display:flex;gap:.25rem 1.4rem;overflow-x:auto}
nav a{color:var(--quiet);text-decoration:none;white-space:nowrap;font-size:.92rem}
nav a:hover{color:var(--ink)}
section{padding:2.25rem 0;border-bottom:1px solid var(--rule)}
section>:last-child{margin-bottom:0}
.block{margin-bottom:2rem;min-width:0}
figure{margin:0;min-width:0}
figcaption{font-size:.88rem;line-height:1.4;margin-bottom:.4rem}
figcaption b{color:var(--ink);font-weight:600}
svg{display:block;max-width:100%;height:auto}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.75rem,1fr));gap:.75rem;margin:0 0 1.5rem}
.tiles div{border:1px solid var(--rule);border-radius:.5rem;background:var(--box);padding:.7rem .9rem}
.tiles dt{font-size:.82rem}
.tiles dd{margin:0;font-size:1.3rem;font-weight:600;white-space:nowrap;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.tiles dd+dd{font-size:.82rem;white-space:normal;font-weight:400;letter-spacing:0;color:var(--quiet)}
.facts{font-size:.92rem;display:grid;grid-template-columns:fit-content(12rem) minmax(0,1fr);gap:.2rem 1.25rem;margin:0}
.facts dt{color:var(--quiet)}
.facts dd{margin:0}
.note{border-left:3px solid var(--orange);background:var(--box);padding:.6rem .9rem;border-radius:0 .4rem .4rem 0;max-width:none}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr));gap:1.5rem 2rem}
.wide{display:grid;grid-template-columns:minmax(0,24rem) minmax(0,1fr);gap:2.5rem;align-items:start}
.scroll{overflow:auto;max-width:100%}
.tall{max-height:66rem;border:1px solid var(--rule);border-radius:.5rem}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .8rem .3rem 0;text-align:left;border-bottom:1px solid var(--rule);white-space:nowrap;vertical-align:middle}
th{font-weight:500}
td.end,th.end{text-align:right}
td:last-child,th:last-child{padding-right:.2rem}
.bars{columns:17rem;column-gap:2.5rem;list-style:none;margin:0;padding:0;font-size:.88rem}
.bars li{break-inside:avoid;display:grid;grid-template-columns:minmax(4.5rem,8rem) 1fr 4.4rem;gap:.6rem;align-items:center;padding:.1rem 0}
.bars span{overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.bars i{height:.6rem;border-radius:.15rem;background:var(--rule);overflow:hidden}
.bars i b{display:block;height:100%;background:var(--blue)}
.bars em{font-style:normal;white-space:nowrap;text-align:right;font-variant-numeric:tabular-nums}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(7rem,1fr));gap:1rem;list-style:none;margin:0;padding:0}
.gallery img{width:100%;height:auto;display:block;border-radius:.3rem;border:1px solid var(--rule)}
.gallery p{font-size:.82rem;line-height:1.35;margin:.35rem 0 0}
.filters{display:flex;flex-wrap:wrap;gap:.35rem;list-style:none;margin:0;padding:0}
.filters img{width:3rem;height:auto;display:block;border-radius:.2rem}
.pixels{image-rendering:pixelated}
.finding{border:1px solid var(--rule);border-left:4px solid var(--tone);border-radius:.5rem;padding:.8rem 1rem;margin-bottom:1rem;background:var(--box)}
.finding h3 span{color:var(--tone);font-size:.78rem;font-weight:600;letter-spacing:.04em;text-transform:uppercase;margin-right:.6rem}
.error{--tone:var(--red)}.warning{--tone:var(--orange)}.info{--tone:var(--blue)}
.heat{width:100%;table-layout:fixed}
.heat td{padding:.12rem .8rem .12rem 0;border:0}
.heat td:first-child,.heat th:first-child{width:10rem;overflow:hidden;text-overflow:ellipsis}
.heat img{width:100%;height:1rem;display:block;border-radius:.15rem;background:var(--box)}
:where(.plot text){fill:var(--quiet)}
.plot text{font:11px system-ui,sans-serif;font-variant-numeric:tabular-nums}

.plot .grid{stroke:var(--rule);stroke-width:1}
.plot .line{fill:none;stroke-width:1.75;stroke-linejoin:round}
.plot .bright{fill:#fff}
.plot .hover{fill:transparent;stroke:none}
.cfg{margin:.75rem 0 0;padding:.75rem 1rem;border:1px solid var(--rule);border-radius:.5rem;background:var(--box);overflow:auto;max-height:40rem;line-height:1.45}
.cfg span{display:block;min-height:1.45em}
.cfg span::before{content:attr(data-line);display:inline-block;width:2.4rem;margin-right:1rem;text-align:right;color:var(--quiet)}
.cfg span:target{background:color-mix(in srgb,var(--orange) 25%,transparent)}
details{margin-top:1.5rem}
summary{cursor:pointer;font-weight:600}
footer{padding-top:1.5rem;padding-bottom:3rem;font-size:.88rem;color:var(--quiet)}
@media (max-width:52rem){.wide{grid-template-columns:minmax(0,1fr)}.heat td:first-child,.heat th:first-child{width:6.5rem}}
@media (max-width:34rem){
body{font-size:15px}
header,main,footer,nav ul{padding-left:1rem;padding-right:1rem}
header{padding-top:1.5rem}
h1{font-size:1.6rem}
.facts{grid-template-columns:minmax(0,1fr);gap:0}
.facts dd{margin-bottom:.5rem}
.gallery{grid-template-columns:repeat(auto-fill,minmax(5.2rem,1fr))}
}
@media print{nav{display:none}.tall,.cfg{max-height:none}section{break-inside:avoid-page}}
"""


def style_sheet() -> str:
    """The whole sheet; colours are variables of their names, `var(--ink)`, and classes, `stroke-blue`."""
    light, dark = (";".join(f"--{name}:{colour[side]}" for name, colour in COLOURS.items()) for side in (0, 1))
    classes = "".join(f".stroke-{name}{{stroke:var(--{name})}}.fill-{name}{{fill:var(--{name})}}" for name in COLOURS)
    return f":root{{{light}}}{ON_DARK}{{:root{{{dark}}}}}{classes}{_SHEET}"

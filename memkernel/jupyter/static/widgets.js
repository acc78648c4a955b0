var g=`.mk {
  --mono: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --focus: var(--text);
  color: var(--text);
  background: var(--page);
  font: 13px/1.5 system-ui, sans-serif;
  border: 1px solid var(--line);
  border-radius: 6px;
  container-type: inline-size;
  position: relative;
  overflow: hidden;
}
.mk *, .mk *::before { box-sizing: border-box; }
.mk [hidden] { display: none !important; }
.mk :focus-visible { outline: 2px solid var(--focus); outline-offset: -2px; }
.mk-bar {
  display: flex; flex-wrap: wrap; align-items: center; gap: 6px; padding: 6px 8px;
  color: var(--text); background: var(--head); border-bottom: 1px solid var(--line);
}
.mk-title { font-weight: 600; overflow-wrap: anywhere; }
.mk-gap { flex: 1; }
.mk-faint { color: var(--faint); background: inherit; }
.mk-button {
  color: var(--text); background: var(--page); border: 1px solid var(--line); border-radius: 4px;
  padding: 1px 8px; margin: 0; min-height: 24px; font: inherit; line-height: 1.5; cursor: pointer; white-space: nowrap;
}
.mk-button:hover:not(:disabled) { border-color: var(--faint); }
.mk-button:disabled { color: var(--faint); background: var(--head); cursor: default; }
.mk-button[aria-pressed="true"] { color: var(--page); background: var(--text); border-color: var(--text); }
.mk-button.mk-quiet { border-color: transparent; background: transparent; }
.mk-button.mk-danger { color: var(--bad); background: var(--page); border-color: var(--bad); }
.mk-input {
  color: var(--text); background: var(--page); border: 1px solid var(--line); border-radius: 4px;
  padding: 1px 6px; min-height: 24px; font: inherit;
}
.mk-failure {
  display: flex; flex-wrap: wrap; align-items: center; gap: 6px; margin: 0; padding: 4px 8px;
  color: var(--bad); background: var(--page); border-bottom: 1px solid var(--line);
}
.mk-tag { color: var(--text); background: var(--tag); border-radius: 8px; padding: 1px 8px; }
.mk-mark { color: var(--bad); background: var(--page); font-weight: 600; border-radius: 2px; }
.mk code, .mk-code { font: 12px/1.5 var(--mono); color: inherit; background: inherit; padding: 0; border: 0; }
.mk-sr {
  position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
.mk-keys {
  position: absolute; inset: 40px 12px auto auto; z-index: 3; padding: 10px 12px; max-height: 80%; overflow: auto;
  color: var(--text); background: var(--page); border: 1px solid var(--line); border-radius: 6px;
  box-shadow: 0 4px 16px rgb(0 0 0 / 25%);
}
.mk-keys dl { margin: 0 0 8px; }
.mk-keys dl > div { display: flex; gap: 10px; }
.mk-keys dt { min-width: 7em; }
.mk-keys dd { margin: 0; }
.mk kbd {
  font: 12px/1.4 var(--mono); color: var(--text); background: var(--head); border: 1px solid var(--line);
  border-radius: 3px; padding: 0 4px; box-shadow: none;
}
.mk-dialog {
  padding: 8px; color: var(--text); background: var(--tag); border-bottom: 1px solid var(--line);
  display: flex; flex-wrap: wrap; align-items: center; gap: 6px;
}
@media (forced-colors: active) { .mk-button, .mk-tag, .mk-mark { border: 1px solid; } }
@media (prefers-contrast: more) { .mk { --line: currentColor; --faint: var(--text); } }
`;var k=`/* The same colours as memkernel/render/style.py; a test compares. */
.mk{--text:#1f2328;--page:#ffffff;--faint:#59636e;--head:#f3f5f7;--line:#d1d9e0;--came:#e6f9ea;--came-word:#a6e9b4;--went:#ffeeec;--went-word:#ffc4bd;--bad:#a40e26;--tag:#fff3c4}
.mk.mk-dark{--text:#e6e8eb;--page:#111111;--faint:#a3abb4;--head:#1d2126;--line:#3d444d;--came:#12291a;--came-word:#1f5f33;--went:#331a1c;--went-word:#7d2b2f;--bad:#ff8f88;--tag:#4a3b05}
`;function a(t,r={},...e){let s=document.createElement(t);for(let[i,o]of Object.entries(r))q(s,i,o);return s.append(...e.flat().filter(i=>i!=null)),s}function q(t,r,e){r.startsWith("on")?t.addEventListener(r.slice(2),e):e===!0?t.setAttribute(r,""):e!==!1&&e!==null&&e!==void 0&&t.setAttribute(r,e)}function h(t,...r){return t.replaceChildren(...r.flat().filter(e=>e!=null)),t}var b=class extends Error{constructor({message:r,hint:e=""}){super(r),this.hint=e}},m=class extends Error{};function y(t,r=15e3){let e=new Map,s=0;function i(d){let u=e.get(d?.id);u&&(o(d.id),d.error?u.reject(new b(d.error)):u.resolve(d.result))}function o(d){clearTimeout(e.get(d).timer),e.delete(d)}function p(d,u={}){return new Promise((f,n)=>{let c=++s,l=setTimeout(()=>{e.delete(c),n(new m(d))},r);e.set(c,{resolve:f,reject:n,timer:l}),t.send({id:c,method:d,params:u})})}return t.on("msg:custom",i),{call:p,dispose(){t.off("msg:custom",i);for(let d of[...e.keys()])o(d)}}}function v(t){return t?`${t.slice(0,10)} ${t.slice(11,16)}`:""}var Y=["data-jp-theme-light","data-vscode-theme-kind","class"],z=["theme","class"];function w(t){let{body:r,documentElement:e}=document;return r.dataset.jpThemeLight?r.dataset.jpThemeLight==="false":r.dataset.vscodeThemeKind?/dark|high-contrast$/.test(r.dataset.vscodeThemeKind):e.getAttribute("theme")?e.getAttribute("theme")==="dark":e.classList.contains("dark")||r.classList.contains("dark")?!0:U(t)??matchMedia("(prefers-color-scheme: dark)").matches}function U(t){for(let r=t;r;r=r.parentElement??r.getRootNode().host){let e=W(getComputedStyle(r).backgroundColor);if(e!==null)return e<.5}return null}function W(t){let r=/rgba?\(([\d.]+)[, ]+([\d.]+)[, ]+([\d.]+)(?:[,/ ]+([\d.]+))?/.exec(t??"");return!r||r[4]!==void 0&&Number(r[4])<.1?null:(.299*r[1]+.587*r[2]+.114*r[3])/255}function $(t,r){let e=w(t);r(e);let s=()=>{w(t)!==e&&(e=!e,r(e))},i=new MutationObserver(s);i.observe(document.body,{attributes:!0,attributeFilter:Y}),i.observe(document.documentElement,{attributes:!0,attributeFilter:z});let o=matchMedia("(prefers-color-scheme: dark)");return o.addEventListener("change",s),()=>{i.disconnect(),o.removeEventListener("change",s)}}var G="input:not([type=range]):not([type=checkbox]):not([type=radio]), textarea, select";function E({model:t,el:r}){let e=[],s=a("div",{class:"mk-sr",role:"status","aria-live":"polite"}),i=a("div",{class:"mk-failures"}),o=a("div",{class:"mk-view"}),p=a("section",{class:"mk",role:"region",tabindex:"-1","data-lm-suppress-shortcuts":"true"},i,o,s);r.append(p);let d=y(t);e.push(d.dispose,$(r,n=>p.classList.toggle("mk-dark",n)));function u(n,c){t.on(n,c);let l=()=>t.off(n,c);return e.push(l),l}let f={model:t,root:p,body:o,call:d.call,get:n=>t.get(n),set(n,c){t.set(n,c),t.save_changes()},on:(n,c)=>u(`change:${n}`,c),onEvent:n=>u("msg:custom",c=>c?.event&&n(c)),onClose:n=>e.push(n),say(n){s.textContent=n},ready(n){requestAnimationFrame(()=>requestAnimationFrame(()=>p.dataset.ready=n))},attempt:(n,c)=>S(f,i,n,c),keys:n=>J(f,n),button:(n,c,l,I={})=>a("button",{type:"button",class:"mk-button",title:c,"aria-label":c,onclick:l,...I},n),close(){for(let n of e.splice(0))n();p.remove()}};return f}async function S(t,r,e,s){V(r,e);try{return await s()}catch(i){if(!(i instanceof Error))throw i;let o=a("p",{class:"mk-failure",role:"alert","data-what":e},H(t,e,i)),p=()=>S(t,r,e,s);o.append(t.button("Retry",`Retry: ${e}`,p),t.button("×","Close this message",()=>o.remove(),{class:"mk-button mk-quiet"})),r.append(o);return}}function V(t,r){for(let e of[...t.children])e.dataset.what===r&&e.remove()}function H(t,r,e){return e instanceof m?`${r}: the kernel is busy or gone; what is shown is as of ${v(t.get("as_of"))} UTC. `:`${r}: ${[e.message,e.hint].filter(Boolean).join(". ").replace(/([.!?])\. /g,"$1 ")} `}function J(t,r){let e=a("div",{class:"mk-keys",role:"dialog","aria-label":"Keys",tabindex:"-1",hidden:!0}),s=Object.entries(r).map(([o,[p]])=>a("div",{},a("dt",{},a("kbd",{},X(o))),a("dd",{},p)));h(e,a("dl",{},s),t.button("Close","Close the list of keys",()=>i(!1))),t.root.append(e);function i(o){e.hidden=!o,o?e.focus():t.root.focus()}t.root.addEventListener("keydown",o=>{if(o.key==="Escape"&&!e.hidden)return x(o,()=>i(!1));if(o.metaKey||o.altKey)return;let p=Q(o);if(o.target.matches(G)&&!p.startsWith("Ctrl+")&&p!=="Escape")return;if(o.key==="?")return x(o,()=>i(e.hidden));let d=r[p]??(o.shiftKey?r[o.key]:void 0);return d&&x(o,()=>d[1](o))})}function x(t,r){t.preventDefault(),t.stopPropagation(),r()}function Q(t){let r=t.shiftKey&&t.key.length>1?"Shift+":"";return`${t.ctrlKey?"Ctrl+":""}${r}${t.key}`}function X(t){return t.replace("Arrow","").replace(" ","Space")}function T(t){t.body.append(a("div",{class:"mk-bar"},a("span",{class:"mk-title"},t.get("kind")))),t.ready("browser")}var C="";function M(t){t.body.append(a("div",{class:"mk-bar"},a("span",{class:"mk-title"},t.get("kind")))),t.ready("compare")}var A="";function L(t){t.body.append(a("div",{class:"mk-bar"},a("span",{class:"mk-title"},t.get("kind")))),t.ready("diff")}var _="";function K(t){t.body.append(a("div",{class:"mk-bar"},a("span",{class:"mk-title"},t.get("kind")))),t.ready("run")}var R="";function B(t){t.body.append(a("div",{class:"mk-bar"},a("span",{class:"mk-title"},t.get("kind")))),t.ready("sandbox")}var j="";var D={browser:T,compare:M,diff:L,run:K,sandbox:B},P=[_,C,R,j,A];var F="data-mk-style";function nt(t){let r=t.getRootNode(),e=r instanceof ShadowRoot?r:document.head;if(e.querySelector(`style[${F}]`))return;let s=document.createElement("style");s.setAttribute(F,""),s.textContent=[k,g,...P].join(`
`),e.append(s)}function at(t){let r=document.createElement("style");return r.textContent=`[data-mk="${CSS.escape(t.model_id??"")}"]{display:none!important}`,document.head.append(r),()=>r.remove()}function it({model:t,el:r}){nt(r);let e=E({model:t,el:r});return e.onClose(at(t)),D[t.get("kind")](e),()=>e.close()}var Vt={render:it};export{Vt as default};

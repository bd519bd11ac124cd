// For those who use the keyboard or listen: what scrolls can be focused, and each button of the sidebar has a name.
const SCROLLING = { ".formula": "formula", ".road": "picture", ".similia-explanation": "explanation" };
function letScroll() {
  for (const [selector, name] of Object.entries(SCROLLING)) {
    document.querySelectorAll(selector).forEach((part) => {
      if (part.scrollWidth > part.clientWidth) {
        part.tabIndex = 0;
        part.setAttribute("role", "group");
        part.setAttribute("aria-label", name);
      } else {
        part.removeAttribute("tabindex");
      }
    });
  }
}
document.querySelectorAll(".bd-sidebar details > summary").forEach((summary) => {
  const link = summary.closest("li").querySelector("a");
  summary.setAttribute("aria-label", `names of ${link.textContent.trim()}`);
});
letScroll();
window.addEventListener("resize", letScroll);
window.addEventListener("load", letScroll);

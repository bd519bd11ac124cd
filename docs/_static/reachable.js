// For those who use the keyboard or listen: formulas that scroll can be focused, and each button of the sidebar has a name.
function letScroll() {
  document.querySelectorAll(".formula").forEach((formula) => {
    if (formula.scrollWidth > formula.clientWidth) {
      formula.tabIndex = 0;
      formula.setAttribute("role", "group");
      formula.setAttribute("aria-label", "formula");
    } else {
      formula.removeAttribute("tabindex");
    }
  });
}
document.querySelectorAll(".bd-sidebar details > summary").forEach((summary) => {
  const link = summary.closest("li").querySelector("a");
  summary.setAttribute("aria-label", `names of ${link.textContent.trim()}`);
});
letScroll();
window.addEventListener("resize", letScroll);

// What the theme leaves out: a block that can be scrolled is reached by keyboard, a caption has the level of a heading,
// the link of an example has its title, and only what holds items is a list.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("pre, .table-wrapper")) block.tabIndex = 0;
  for (const caption of document.querySelectorAll(".caption[role=heading]")) caption.ariaLevel = "2";
  for (const list of document.querySelectorAll(".citation-list[role=list]")) list.removeAttribute("role");
  for (const card of document.querySelectorAll(".sphx-glr-thumbcontainer")) {
    card.querySelector("a").ariaLabel = card.querySelector(".sphx-glr-thumbnail-title").textContent;
  }
});

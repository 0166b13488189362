// Runs before the page is drawn, so that a dark page never flashes white.
{
  const kept = localStorage.getItem("modulekge-theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
}

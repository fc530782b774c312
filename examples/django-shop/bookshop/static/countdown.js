// Counts down to what the server says, by the server's clock, and loads the page again when it is there.
for (const place of document.querySelectorAll("[data-until]")) {
  const ahead = place.dataset.now ? Date.parse(place.dataset.now) - Date.now() : 0;
  const timer = setInterval(() => {
    const left = Math.ceil((Date.parse(place.dataset.until) - Date.now() - ahead) / 1000);
    const parts = [left / 3600, (left / 60) % 60, left % 60].map((part) => String(Math.floor(part)).padStart(2, "0"));
    place.textContent = parts.join(":");
    if (left > 0) return;
    clearInterval(timer);
    setTimeout(() => location.reload(), Math.random() * 1000); // not all in the same millisecond
  }, 250);
}

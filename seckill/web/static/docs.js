const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

SwaggerUIBundle({
  dom_id: "#docs",
  url: "./openapi.json",
  deepLinking: true,
  validatorUrl: null, // the badge would send the description to a server on the internet
});

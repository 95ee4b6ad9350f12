// Loaded by the cookbook. Fills the queries and commands with the values of the fields.
import { fillCommand, fillQuery, readParams } from './fill-recipe.js';

const fields = document.querySelector('[data-recipe-fields]');
const inputs = [...fields.querySelectorAll('input')];
const recipes = [...document.querySelectorAll('[data-recipe]')].map((recipe) => {
  const blocks = [...recipe.querySelectorAll('pre')];
  return { blocks, texts: blocks.map((block) => block.textContent) };
});

// The portal links to the page with the environment, such as /docs/cookbook?environment=demo-development.
for (const [name, value] of new URLSearchParams(location.search))
  for (const input of inputs) if (input.name === name) input.value = value;
fields.hidden = false;
fields.addEventListener('input', fill);
fill();

function fill() {
  const { user, ...params } = Object.fromEntries(inputs.map(({ name, value }) => [name, value.trim()]));
  for (const { blocks, texts } of recipes) {
    const [query, ...commands] = texts;
    blocks[0].textContent = fillQuery(query, { ...readParams(commands[0]), ...params });
    for (const [index, command] of commands.entries())
      blocks[index + 1].textContent = fillCommand(command, params, user);
  }
}

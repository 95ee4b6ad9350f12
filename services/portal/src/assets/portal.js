// Adds Copy buttons and local times to pages.

// On phones, the navigation is a single scrolling line.
document.querySelector('.side [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });

/** Shows a Copy button and makes it copy its `data-copy` attribute. */
export function enableCopy(button) {
  button.hidden = false;
  button.addEventListener('click', async () => {
    const label = button.firstChild;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      label.textContent = 'Copied';
    } catch {
      label.textContent = 'Select the text and press Ctrl+C';
    }
    setTimeout(() => {
      label.textContent = 'Copy';
    }, 2000);
  });
}

for (const button of document.querySelectorAll('button.copy')) enableCopy(button);

export const toLocalTime = (instant) =>
  new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }).format(instant);

for (const element of document.querySelectorAll('time[datetime]')) {
  const instant = new Date(element.dateTime);
  if (Number.isNaN(instant.getTime())) continue;
  const local = document.createElement('span');
  local.textContent = toLocalTime(instant);
  const utc = document.createElement('span');
  utc.className = 'quiet';
  utc.textContent = ` (${element.textContent})`;
  element.replaceChildren(local, utc);
}

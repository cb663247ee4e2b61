// Settings sent with each request besides the messages. Empty fields are not sent.

const kSampling = [
  {name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.05},
  {name: 'top_p', label: 'Top p', min: 0, max: 1, step: 0.01},
  {name: 'top_k', label: 'Top k', min: 0, step: 1},
  {name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.01},
  {name: 'repetition_penalty', label: 'Repetition penalty', min: 0.05, max: 3, step: 0.05},
  {name: 'presence_penalty', label: 'Presence penalty', min: -2, max: 2, step: 0.1},
  {name: 'frequency_penalty', label: 'Frequency penalty', min: -2, max: 2, step: 0.1},
  {name: 'max_tokens', label: 'Longest answer', min: 1, step: 1},
  {name: 'seed', label: 'Seed', min: 0, step: 1},
  {name: 'reasoning_effort', label: 'Thinking', choices: ['', 'none', 'low', 'medium', 'high']},
];

const settings = savedSettings();

function savedSettings() {
  try {
    return JSON.parse(remembered.get('settings')) || {};
  } catch {
    return {};
  }
}

function settingInput({name, label, choices, ...limits}) {
  const input = choices ?
    element('select', {}, ...choices.map((choice) => element('option', {value: choice}, choice || 'default'))) :
    element('input', {type: 'number', inputMode: 'decimal', placeholder: 'default', ...limits});
  input.dataset.setting = name;
  return element('label', {}, label, input);
}

function showSettings() {
  for (const input of document.querySelectorAll('[data-setting]')) input.value = settings[input.dataset.setting] || '';
}

function setUpSettings() {
  byId('sampling').append(...kSampling.map(settingInput));
  showSettings();
  for (const input of document.querySelectorAll('[data-setting]')) {
    input.addEventListener('input', () => {
      settings[input.dataset.setting] = input.validity.valid ? input.value : '';
      remembered.set('settings', JSON.stringify(settings));
    });
  }
  byId('reset-settings').onclick = () => {
    for (const name of Object.keys(settings)) delete settings[name];
    remembered.set('settings', '{}');
    showSettings();
  };
}

// The settings as fields of a request.
function settingFields() {
  const fields = {};
  for (const {name, choices} of kSampling) {
    if (settings[name]) fields[name] = choices ? settings[name] : Number(settings[name]);
  }
  const stops = (settings.stop || '').split('\n').filter((line) => line !== '');
  if (stops.length) fields.stop = stops;
  if ((settings.tools || '').trim()) {
    try {
      fields.tools = JSON.parse(settings.tools);
    } catch {
      throw new ServerError('The tools of the settings are not JSON.', 0);
    }
  }
  return fields;
}

// Dark, light, or the system's preference.
function setUpTheme() {
  const themes = ['', 'light', 'dark'];
  const names = {'': 'as the system', light: 'light', dark: 'dark'};
  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    byId('theme').title = `Colours: ${names[theme]}`;
  };
  show(themes.includes(remembered.get('theme')) ? remembered.get('theme') : '');
  byId('theme').onclick = () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme) + 1) % themes.length];
    remembered.set('theme', next);
    show(next);
  };
}

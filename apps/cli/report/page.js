// Reads the data and draws the sections. The page says on <html> whether it is complete: data-ready, or data-error.
addEventListener("error", (event) => { document.documentElement.dataset.error = event.message; });

const report = JSON.parse(document.getElementById("data").textContent);
document.title = `${report.model_name || report.file} – Polyphase report`;
document.getElementById("title").textContent = report.model_name || report.file;
summarySection(report);
passesSection(report);
memorySection(report);
stepsSection(report);
kernelsSection(report);
weightsSection(report);
document.getElementById("footer").textContent =
  `Written by polyphase ${report.version} on ${report.written}. This file is whole: it loads nothing from anywhere.`;
document.documentElement.dataset.ready = "true";

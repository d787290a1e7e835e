"""Graphics in containers: Vulkan, EGL, GLX and OpenCL look for the driver's part in places that the runtime fills only
where the container asks for it."""

from berth.evidence.message import Message

MESSAGES: tuple[Message, ...] = (
    Message(
        "image.graphics_unasked",
        (
            "failed to find any icd",
            "found no drivers!",
            "vkcreateinstance failed",
            "could not initialize vulkan",
            "no vulkan-capable",
            "failed to find vulkan",
            "no suitable vulkan",
            "eglinitialize() failed",
            "failed to initialize egl display",
            "egl_not_initialized",
            "eglinitialize failed",
            "unable to initialize egl",
            "eglquerydevicesext",
            "egl device",
            "no device could be created. some known system issues",
            "matching fbconfigs or visuals found",
            "failed to load driver: swrast",
            "failed to open nvidia-drm",
            "failed to open swrast",
            "platform_not_found_khr",
            "no opencl platforms found",
            "number of platforms",
            "failed to create egl",
        ),
        r"Failed to find any ICD|Found no drivers!|vkCreateInstance failed|Could not initialize Vulkan"
        r"|No Vulkan-capable (?:device|GPU)|Failed to find Vulkan (?:device|ICD|driver)|No suitable Vulkan"
        r"|eglInitialize(?:\(\))? failed|EGL_NOT_INITIALIZED|Failed to initialize EGL display|Unable to initialize EGL"
        r"|No device could be created\. Some known system issues"
        r"|eglQueryDevicesEXT\b[^\n]{0,60}(?:fail|0 devices|not found|no devices)"
        r"|\bno EGL devices? (?:found|available)|Cannot find EGL device"
        r"|libGL error: (?:No matching fbConfigs or visuals found|failed to load driver: swrast)"
        r"|MESA-LOADER: failed to open (?:nvidia-drm|swrast)|PLATFORM_NOT_FOUND_KHR|No OpenCL platforms found"
        r"|Number of platforms\s+0\b|Failed to create EGL (?:display|context|image|surface)",
    ),
)
